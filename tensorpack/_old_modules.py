"""Loads what a module is asked for and does not have itself, when it is asked.

A package with a table `_HOMES` loads its own modules so. And scripts import names from modules that
once held them, or had only imported them, such as `tensorpack.train.tower.TowerContext`: they get
what is public elsewhere in the library. What is public nowhere is an AttributeError.
"""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, List, Optional

from tensorpack._public_names import HOMES, MODULES

_WITHOUT_TENSORFLOW = frozenset(["RL", "dataflow", "runs", "utils"])
_SERVED = {*HOMES.values(), "contrib", "trainv1"} - {"report"}  # which never held names of others
_ADDRESSES = {  # package -> modules that it had; with its names, or with those of another module
    "RL": "common=RL.envbase",
    "callbacks": "dump stats=_addresses.of_callbacks",
    "compat": "tensor_spec",
    "dataflow": """caffe=dataflow.files.caffe common format
        hdf5=dataflow.files.hdf5 image_files=dataflow.files.images lmdb=dataflow.files.lmdb_file
        npz=dataflow.files.npz parallel parallel_map prefetch serialize
        svmlight=dataflow.files.svmlight tfrecord=dataflow.files.tfrecord""",
    "dataflow.dataset": "bsds500 caltech101 places svhn",
    "dataflow.imgaug": "convert deform external misc noname paste",
    "graph_builder": """_utils distributed input_source=input_source input_source_base
        predict=_addresses.of_graph_builder predictor_factory
        training=_addresses.of_graph_builder utils=_addresses.of_graph_builder""",
    "input_source": """input_source input_source_base placeholder=input_source.base
        zmq=input_source.enqueue""",
    "models": """_old_batch_norm=_addresses.of_models common image_sample
        model_desc=graph_builder.model_desc shapes softmax utils""",
    "tfutils": """collect_env collection=tfutils.graph
        distributions=tfutils.symbolic_functions export=predict.export
        modelutils=tfutils.model_utils scope_utils=tfutils.graph""",
    "train": """distributed=train.group.distributed feedfree input_data=input_source
        input_source=input_source interface model_desc=graph_builder monitor predict trainer
        trainers utility""",
    "trainv1": "base config distributed interface multigpu simple",
    "utils": """compatible_serialize debug=utils.of_2017.debug develop=utils.of_2017.develop
        discretize=utils.of_2017.discretize globvars=utils.of_2017.globvars
        loadcaffe=utils.of_2017.loadcaffe lut=utils.of_2017.lut utils""",
}
_HELPERS = {  # module -> names that are public there, and in no package
    "_addresses.of_graph_builder": """AsyncMultiGPUBuilder GraphBuilder OverrideCachingDevice
        OverrideToLocalVariable SimplePredictBuilder SyncMultiGPUParameterServerBuilder
        SyncMultiGPUReplicatedBuilder aggregate_grads average_grads override_to_local_variable""",
    "_addresses.of_train": "InputData",
    "compat": "is_tfv2",
    "dataflow.base": "DataFlowReentrantGuard ResumableDataFlow state_of",
    "dataflow.dataset.mnist": "extract_images extract_labels maybe_download",
    "dataflow.dftools": "dump_dataflow_to_process_queue",
    "dataflow.imgaug.base": "BaseTransform TransformAugmentorBase",
    "dataflow.imgaug.crop": "FixedCrop",
    "input_source.base": "build_or_reuse_placeholder",
    "input_source.remap": "get_sublist_by_names get_tensors_inputs",
    "models.tflayer": """convert_to_tflayer_args map_common_tfargs monkeypatch_tf_layers
        rename_get_variable""",
    "tfutils.symbolic_functions": "batch_flatten rms",
    "tfutils.tower": "PredictTowerContext TrainTowerContext",
    "train.group.distributed_base": "DistributedTrainerBase",
    "train.run": "TrainLoop",
    "utils.argtools": "call_only_once get_data_format",
    "utils.concurrency": "OrderedResultGatherProc",
    "utils.develop": """HIDE_DOC NonPicklableWrapper create_dummy_class create_dummy_func
        deprecated log_deprecated""",
    "utils.nvml": "NVMLContext",
    "utils.rect": "BoxBase IntBox",
    "utils.serialize": "dumps loads",
}
_PATHS = {name: f"tensorpack.{home}" for home, names in _HELPERS.items() for name in names.split()}
_PATHS.update((name, f"tensorpack.{home}") for name, home in HOMES.items())
_PATHS.update(MODULES)


class Package(ModuleType):
    """A package whose modules become an `OldModule` when the import system binds them to it."""

    def __setattr__(self, name: str, value: Any) -> None:
        hidden = isinstance(value, ModuleType) and name in vars(self).get("_HOMES", ())
        # A function hides the module of its name, as `argscope` does.
        super().__setattr__(name, getattr(value, name) if hidden else value)
        path = f"{self.__name__}.{name}"
        if sys.modules.get(path) is value and _part(path) in _SERVED:
            is_package = "__path__" in vars(value)  # its modules were loaded before it was bound
            below = [key for key in list(sys.modules) if is_package and key.startswith(f"{path}.")]
            for loaded in [path, *below]:
                sys.modules[loaded].__class__ = OldModule
                _add_addresses(loaded)


class OldModule(Package):
    """A module, or a package, that is asked for names of others."""

    def __getattr__(self, name: str) -> Any:
        """Finds a name that neither the module nor its own `__getattr__` has."""
        if name == "__all__":
            return _public_names(self) or _home_of(self).__all__
        home = None if name.startswith("_") else _module_of(self, name)
        if home is None or home is self:
            raise AttributeError(f"module {self.__name__!r} has no public name {name!r}")
        is_module = home.__name__.endswith(f".{name}") and name not in vars(self).get("_HOMES", ())
        return home if is_module else getattr(home, name)

    def __dir__(self) -> List[str]:
        forwards = not vars(self).keys().isdisjoint(["_HOMES", "_home"])  # it has names of others
        return list(self.__all__) if forwards else list(super().__dir__())


def _add_addresses(package: str) -> None:
    for entry in _ADDRESSES.get(package.partition(".")[2], "").split():
        name, _, home = entry.partition("=")
        path = f"{package}.{name}"
        module = OldModule(path, f"`{path}` of older versions.")
        module.__spec__ = ModuleSpec(path, None)
        vars(module)["_home"] = f"tensorpack.{home}" if home else package
        vars(sys.modules[package]).setdefault(name, sys.modules.setdefault(path, module))


def _module_of(module: ModuleType, name: str) -> Optional[ModuleType]:
    """Returns the module that has a public name, or is called so; None if there is none."""
    if hasattr(module, "__path__"):
        path = vars(module).get("_HOMES", {}).get(name, name)
        path = path if path.startswith("tensorpack.") else f"{module.__name__}.{path}"
        try:
            return import_module(path)
        except ModuleNotFoundError as error:
            if error.name != path:
                raise
    home = _home_of(module)
    has_moved = "_home" in vars(module) and name in vars(home)
    if has_moved or home.__name__ != "tensorpack" and name in getattr(home, "__all__", ()):
        return home
    path = _PATHS.get(name, "")
    loads_tensorflow = _part(path) not in _WITHOUT_TENSORFLOW
    if not path or loads_tensorflow and _part(module.__name__) in _WITHOUT_TENSORFLOW:
        return None
    return import_module(path)


def _public_names(module: ModuleType) -> List[str]:
    """Returns the public names that the tables have of a module: its `__all__`."""
    package, _, last = module.__name__.rpartition(".")
    tables, path = vars(sys.modules[package]), module.__name__.partition(".")[2]
    names = [name for name, home in tables.get("_HOMES", {}).items() if home == last]
    names += tables.get("_HELPERS", {}).get(last, "").split() + _HELPERS.get(path, "").split()
    return sorted(names)


def _home_of(module: ModuleType) -> ModuleType:
    return import_module(vars(module).get("_home") or module.__name__.rpartition(".")[0])


def _part(path: str) -> str:
    return path.partition(".")[2].partition(".")[0]
