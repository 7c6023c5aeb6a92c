"""Exports trained models: SavedModel, frozen graph, TFLite, or the weights as arrays.

An export appears under its name whole or not at all. With inputs to check it on, it is first loaded
in a new Python process, which has TensorFlow and nothing of this package, and has to compute there
what the model computes here.
"""

import os
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.gpu import change_env

from ._export_check import compare_export
from .checkpoint import PathLike, is_pattern, names_without_output, save_checkpoint_vars
from .dependency import ancestors
from .inference import Inference, build_inference, close_session
from .precision import ComputeOptions
from .sesscreate import NewSessionCreator
from .sessinit import SmartInit
from .tower import TowerFunc

_CALLS_PYTHON = frozenset(["EagerPyFunc", "PyFunc", "PyFuncStateless"])
_TABLES = frozenset(
    "HashTable HashTableV2 MutableDenseHashTableV2 MutableHashTable MutableHashTableV2".split()
)
_IDENTITIES = frozenset(["CheckNumerics", "Identity", "PreventGradient", "StopGradient"])
_CONTROL_FLOW = frozenset(["Enter", "Exit", "Merge", "NextIteration", "Switch"])

Arrays = Optional[Sequence[Any]]


class ModelExporter:
    """Exports the inference graph of a model, with its weights.

    Each call builds the model, loads its weights and closes its session, unless that is another's
    (`ReuseSessionCreator`). All weights that the outputs need must be there, as for a predictor.

    `check_inputs`, where it is given, has one array for each of `config.input_names`. The export is
    loaded and run with these in another process, before it gets its name; this takes seconds.

    Args:
      config: a `PredictConfig`; names the inputs and outputs, and where the weights come from.
    """

    def __init__(self, config: Any) -> None:
        self.config = config

    def export_compact(
        self,
        filename: PathLike,
        optimize: bool = True,
        toco_compatible: bool = False,
        check_inputs: Arrays = None,
    ) -> None:
        """Writes a frozen graph: a `tf.GraphDef` whose variables are constants.

        Tensors have the names that they have in the model. Inputs become placeholders.

        Args:
          optimize: whether to remove identities and checks of numbers.
          toco_compatible: whether to try if TFLite takes the graph, and to raise if not.

        Raises:
          ValueError: the outputs depend on a Python function, a table, or weights that are missing.
          RuntimeError: the export does not compute what the model computes.
        """
        with self._export("frozen", filename, check_inputs) as (model, path):
            graph_def = _freeze(model)
            if optimize:
                graph_def = _without_identities(graph_def, _op_names(model))
            if toco_compatible:
                _to_tflite(graph_def, model)
            # An older TensorFlow refuses an attribute that it does not know, also at its default.
            stripped = tf.train.export_meta_graph(
                graph_def=graph_def, collection_list=[], strip_default_attrs=True
            )
            Path(path).write_bytes(stripped.graph_def.SerializeToString())

    def export_serving(
        self,
        filename: PathLike,
        tags: Union[str, Sequence[str], None] = None,
        signature_name: str = "prediction_pipeline",
        check_inputs: Arrays = None,
    ) -> None:
        """Writes a SavedModel, as TensorFlow Serving and `tf.saved_model.load` take it.

        Args:
          filename: of the directory, which must be empty or not exist.
          tags: by default `["serve"]`.
          signature_name: of the signature, whose inputs and outputs have the names in the config.
            It is also there as "serving_default".

        Raises:
          FileExistsError: there is something in the directory.
          ValueError: the outputs depend on a Python function, or on weights that are missing.
        """
        target = os.path.abspath(filename)
        if is_pattern(target):
            raise ValueError(
                f"TensorFlow takes {target!r} for a pattern, and could not load a SavedModel from "
                "there: export it to a path without [ or \\."
            )
        if os.path.isfile(filename) or (os.path.isdir(filename) and os.listdir(filename)):
            raise FileExistsError(
                f"{os.fspath(filename)} exists. A SavedModel is a directory of its own: remove it, "
                "or count versions, as in serving/1, serving/2."
            )
        tags = [tags] if isinstance(tags, str) else list(tags or [tf.saved_model.SERVING])
        how = {
            "tags": tags,
            "signature": signature_name,
            "inputs": names_without_output(self.config.input_names),
            "outputs": names_without_output(self.config.output_names),
        }
        with self._export("saved_model", filename, check_inputs, **how) as (model, path):
            signature = tf.saved_model.build_signature_def(
                _tensor_infos(how["inputs"], model.inputs),
                _tensor_infos(how["outputs"], model.outputs),
                tf.saved_model.PREDICT_METHOD_NAME,
            )
            builder = tf.saved_model.Builder(path)
            builder.add_meta_graph_and_variables(
                model.sess,
                tags,
                {"serving_default": signature, signature_name: signature},
                clear_devices=True,
                strip_default_attrs=True,
                main_op=tf.group(tf.local_variables_initializer(), tf.tables_initializer()),
            )
            builder.save()

    def export_tflite(self, filename: PathLike, check_inputs: Arrays = None) -> None:
        """Writes a model for TFLite, with the inputs and outputs in the order of the config.

        On TensorFlow 1, sizes of inputs that vary, other than that of the batch, are refused, and
        the batch becomes 1; a caller resizes the inputs.

        Raises:
          Exception: TFLite does not have an op of the model; TensorFlow says which.
        """
        with self._export("tflite", filename, check_inputs) as (model, path):
            Path(path).write_bytes(_to_tflite(_freeze(model), model))

    def export_npz(self, filename: PathLike) -> None:
        """Writes the variables that the outputs depend on, for `SmartInit` or NumPy, as `.npz`."""
        if not os.fspath(filename).endswith(".npz"):
            raise ValueError(f"Arrays are written to NAME.npz, got {os.fspath(filename)!r}.")
        with self._built() as model:
            used = set(ancestors(model.outputs, fed=model.inputs))
            variables = {v.op.name: v for v in tf.global_variables() if v.op in used}
            save_checkpoint_vars(model.sess.run(variables), filename)
        logger.info(f"{len(variables)} variables are exported to {os.fspath(filename)}.")

    @contextmanager
    def _built(self) -> Iterator[Inference]:
        with ExitStack() as stack:
            model = build_inference(self.config)
            stack.callback(close_session, self.config.session_creator, model.sess)
            stack.enter_context(model.sess.graph.as_default())
            yield model

    @contextmanager
    def _export(
        self, kind: str, filename: PathLike, check_inputs: Arrays, **how: Any
    ) -> Iterator[Tuple[Inference, str]]:
        """Gives the model and a path to write to; checks what is there and moves it into place."""
        if check_inputs is not None and len(check_inputs) != len(self.config.input_names):
            raise ValueError(
                f"check_inputs takes an array for each of {', '.join(self.config.input_names)}, "
                f"got {len(check_inputs)}."
            )
        target = os.path.abspath(os.fspath(filename))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with ExitStack() as stack:
            model = stack.enter_context(self._built())
            _refuse(model, tables=kind != "saved_model")
            folder = tempfile.TemporaryDirectory(prefix=".export-", dir=os.path.dirname(target))
            path = os.path.join(stack.enter_context(folder), "model")
            yield model, path
            if check_inputs is not None:
                compare_export(model, check_inputs, {**how, "kind": kind, "path": path})
            os.replace(path, target)
        checked = "" if check_inputs is None else ", loaded in another process and compared"
        logger.info(f"The model is exported to {os.fspath(filename)}{checked}.")


class ModelExport:
    """Exports a model for TensorFlow Serving, in the spelling of 2017; see `ModelExporter`."""

    def __init__(self, model: Any, input_names: Sequence[str], output_names: Sequence[str]) -> None:
        self.model = model
        self.input_names = list(input_names)
        self.output_names = list(output_names)

    def export(
        self,
        checkpoint: str,
        export_path: PathLike,
        version: int = 1,
        tags: Union[str, Sequence[str], None] = None,
        signature_name: str = "prediction_pipeline",
    ) -> None:
        """Writes a SavedModel to `{export_path}/{version}`.

        Args:
          checkpoint: where the weights come from, as in `SmartInit`.
          tags: by default `["serve"]`.
        """
        signature = self.model.get_input_signature()
        config = SimpleNamespace(
            tower_func=TowerFunc(self.model.build_graph, signature),
            input_signature=signature,
            input_names=self.input_names,
            output_names=self.output_names,
            session_creator=NewSessionCreator(),
            session_init=SmartInit(checkpoint),
            computing=ComputeOptions(),
            create_graph=True,
        )
        target = os.path.join(os.fspath(export_path), str(version))
        ModelExporter(config).export_serving(target, tags, signature_name)


def _refuse(model: Inference, tables: bool) -> None:
    """Raises ValueError for what an export cannot contain."""
    for op in ancestors(model.outputs, fed=model.inputs):
        if op.type in _CALLS_PYTHON:
            raise ValueError(
                f"{op.name} calls a Python function, which is only in this process. Write it with "
                "TensorFlow's ops, or feed its result: see `input_names`."
            )
        if tables and op.type in _TABLES:
            raise ValueError(
                f"{op.name} is a table, and only a SavedModel has the values of tables: use "
                "export_serving()."
            )


def _tensor_infos(names: Sequence[str], tensors: Sequence[tf.Tensor]) -> Dict[str, Any]:
    # Not by tf.saved_model.build_tensor_info, which warns of its deprecation at each call.
    infos = tf.MetaGraphDef().signature_def["infos"].inputs
    for name, tensor in zip(names, tensors):
        infos[name].name, infos[name].dtype = tensor.name, tensor.dtype.as_datatype_enum
        infos[name].tensor_shape.CopyFrom(tensor.shape.as_proto())
    return dict(infos)


def _op_names(model: Inference) -> List[str]:
    return sorted({each.op.name for each in [*model.inputs, *model.outputs]})


def _freeze(model: Inference) -> Any:
    """Returns the graph that computes the outputs from the inputs, with constants for variables."""
    graph_def = model.sess.graph.as_graph_def()
    fed = {each.op.name: each for each in model.inputs if len(each.op.outputs) == 1}
    for node in graph_def.node:
        node.device = ""
        node.attr.pop("_class", None)  # names ops to be beside, which may not be in the export
        if node.name in fed and node.op != "Placeholder":
            tensor = fed[node.name]
            node.Clear()
            node.name, node.op = tensor.op.name, "Placeholder"
            node.attr["dtype"].type = tensor.dtype.base_dtype.as_datatype_enum
            node.attr["shape"].shape.CopyFrom(tensor.shape.as_proto())
    return tf.graph_util.convert_variables_to_constants(model.sess, graph_def, _op_names(model))


def _without_identities(graph_def: Any, kept: Sequence[str]) -> Any:
    """Returns the graph without the nodes that give their input, unless they order other nodes."""
    ops = {node.name: node.op for node in graph_def.node}
    inputs = [name for node in graph_def.node for name in node.input]
    fixed = {*kept, *(name[1:] for name in inputs if name.startswith("^"))}
    source = {
        node.name: node.input[0]
        for node in graph_def.node
        if node.op in _IDENTITIES and len(node.input) == 1 and node.name not in fixed
        if ops[node.input[0].partition(":")[0]] not in _CONTROL_FLOW
    }
    result = tf.GraphDef(versions=graph_def.versions, library=graph_def.library)
    for node in graph_def.node:
        if node.name not in source:
            copy = result.node.add()
            copy.CopyFrom(node)
            for at, name in enumerate(copy.input):
                while name.partition(":")[0] in source:
                    name = source[name.partition(":")[0]]
                copy.input[at] = name
    return result


def _to_tflite(graph_def: Any, model: Inference) -> bytes:
    # TensorFlow 1 starts a program for it that pip has put beside Python.
    programs = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", os.defpath)
    with change_env("PATH", programs), tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")  # it changes the shapes of the inputs
        inputs = [graph.get_tensor_by_name(each.name) for each in model.inputs]
        outputs = [graph.get_tensor_by_name(each.name) for each in model.outputs]
        return tf.lite.TFLiteConverter(graph_def, inputs, outputs).convert()
