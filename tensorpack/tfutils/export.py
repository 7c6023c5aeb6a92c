"""Exports trained models: SavedModel, frozen graph, or the weights as arrays.

An export appears under its name whole or not at all. With inputs to check it on, it is first loaded
and has to compute what the model computes.
"""

import os
import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

from .checkpoint import PathLike, is_pattern, names_without_output, save_checkpoint_vars
from .common import get_default_sess_config
from .dependency import ancestors
from .fed_input import FedInput
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
_TOLERANCE = 1e-3  # of the largest number of an output: its ops may have other kernels

Arrays = Optional[Sequence[Any]]


class ModelExporter:
    """Exports the inference graph of a model, with its weights.

    Each call builds the model, loads its weights and closes its session, unless that is another's
    (`ReuseSessionCreator`). All weights that the outputs need must be there, as for a predictor.

    `check_inputs`, where it is given, has one array for each of `config.input_names`. The export is
    loaded and run with these before it gets its name.

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
          toco_compatible: of old scripts. Nothing is done to the graph that TFLite does not take.

        Raises:
          ValueError: the outputs depend on a Python function, a table, or weights that are missing.
          RuntimeError: the export does not compute what the model computes.
        """
        with self._export(filename, check_inputs, _load_frozen) as (model, path):
            graph_def = _freeze(model)
            if optimize:
                graph_def = _without_identities(graph_def, _op_names(model))
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
                f"{os.fsdecode(filename)} exists. A SavedModel is a directory of its own: remove "
                "it, or count versions, as in serving/1, serving/2."
            )
        tags = [tags] if isinstance(tags, str) else list(tags or [tf.saved_model.SERVING])

        def load(sess: tf.Session, path: str) -> None:
            tf.saved_model.load(sess, tags, path)

        with self._export(filename, check_inputs, load, has_tables=True) as (model, path):
            signature = tf.saved_model.build_signature_def(
                _tensor_infos(self.config.input_names, model.inputs),
                _tensor_infos(self.config.output_names, model.outputs),
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

    def export_npz(self, filename: PathLike) -> None:
        """Writes the variables that the outputs depend on, for `SmartInit` or NumPy, as `.npz`."""
        if not os.fsdecode(filename).endswith(".npz"):
            raise ValueError(f"Arrays are written to NAME.npz, got {os.fsdecode(filename)!r}.")
        with self._built() as model:
            used = set(ancestors(model.outputs, fed=model.inputs))
            variables = {v.op.name: v for v in tf.global_variables() if v.op in used}
            save_checkpoint_vars(model.sess.run(variables), filename)
        logger.info(f"{len(variables)} variables are exported to {os.fsdecode(filename)}.")

    @contextmanager
    def _built(self) -> Iterator[Inference]:
        with ExitStack() as stack:
            model = build_inference(self.config)
            stack.callback(close_session, self.config.session_creator, model.sess)
            stack.enter_context(model.sess.graph.as_default())
            yield model

    @contextmanager
    def _export(
        self,
        filename: PathLike,
        check_inputs: Arrays,
        load: Callable[[tf.Session, str], None],
        has_tables: bool = False,
    ) -> Iterator[Tuple[Inference, str]]:
        """Gives the model and a path to write to; checks what is there and moves it into place.

        Args:
          load: loads what is at a path into a session and its graph.
          has_tables: whether this kind of export has the values of tables.
        """
        target = os.path.abspath(os.fsdecode(filename))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with ExitStack() as stack:
            model = stack.enter_context(self._built())
            _refuse(model, tables=not has_tables)
            folder = tempfile.TemporaryDirectory(prefix=".export-", dir=os.path.dirname(target))
            path = os.path.join(stack.enter_context(folder), "model")
            yield model, path
            if check_inputs is not None:
                _compare(model, check_inputs, load, path)
            os.replace(path, target)
        checked = "" if check_inputs is None else ", loaded and compared"
        logger.info(f"The model is exported to {os.fsdecode(filename)}{checked}.")


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
        target = os.path.join(os.fsdecode(export_path), str(version))
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


def _load_frozen(_: tf.Session, path: str) -> None:
    tf.import_graph_def(tf.GraphDef.FromString(Path(path).read_bytes()), name="")


def _compare(
    model: Inference, given: Sequence[Any], load: Callable[[tf.Session, str], None], path: str
) -> None:
    """Raises RuntimeError if what is at the path does not compute what the model computes."""
    arrays = [
        FedInput(repr(each.name), each.dtype, each.shape).feed(value, "check_inputs")
        for value, each in zip(given, model.inputs)
    ]
    expected = model.sess.run(model.outputs, dict(zip(model.inputs, arrays)))
    with tf.Graph().as_default(), tf.Session(config=get_default_sess_config()) as sess:
        load(sess, path)
        feed = {each.name: array for each, array in zip(model.inputs, arrays)}
        computed = sess.run([each.name for each in model.outputs], feed)
    for tensor, ours, theirs in zip(model.outputs, expected, computed):
        if not _are_close(np.asarray(ours), np.asarray(theirs)):
            raise RuntimeError(
                f"The export computes another {tensor.name} than the model: {_extract(theirs)}, "
                f"not {_extract(ours)}. Nothing is written."
            )


def _are_close(ours: np.ndarray, theirs: np.ndarray) -> bool:
    if ours.shape != theirs.shape:
        return False
    if not np.issubdtype(ours.dtype, np.inexact):
        return np.array_equal(ours, theirs)
    largest = float(np.max(np.abs(ours[np.isfinite(ours)]), initial=0))
    return np.allclose(ours, theirs, rtol=0, atol=_TOLERANCE * largest, equal_nan=True)


def _extract(value: Any) -> str:
    return np.array2string(np.asarray(value), threshold=8, edgeitems=2).replace("\n", "")


def _tensor_infos(names: Sequence[str], tensors: Sequence[tf.Tensor]) -> Dict[str, Any]:
    # Not by tf.saved_model.build_tensor_info, which warns of its deprecation at each call.
    infos = tf.MetaGraphDef().signature_def["infos"].inputs
    for name, tensor in zip(names_without_output(names), tensors):
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
