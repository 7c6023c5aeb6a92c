"""Exports trained models: SavedModel, frozen graph, or the weights as arrays."""

import os
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any, Callable, Iterator, Optional, Sequence, Union

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import (
    PathLike,
    is_pattern,
    names_without_output,
    save_checkpoint_vars,
)
from tensorpack.tfutils.common import get_default_sess_config
from tensorpack.tfutils.dependency import ancestors
from tensorpack.tfutils.sessinit import SmartInit
from tensorpack.utils import logger
from tensorpack.utils.atomic import open_atomic

from .base import OfflinePredictor
from .config import PredictConfig

_PYTHON = ("EagerPyFunc", "PyFunc", "PyFuncStateless")
_TABLES = ("HashTable", "HashTableV2")
_TOLERANCE = 1e-3  # of the largest number of an output: its ops may have other kernels

Arrays = Optional[Sequence[Any]]
Tags = Union[str, Sequence[str], None]


class ModelExporter:
    """Exports the inference graph of a model, with its weights.

    Each call builds the model, loads its weights and closes its session, unless that is another's
    (`ReuseSessionCreator`). All weights that the outputs need must be there, as for a predictor.

    Args:
      config: a `PredictConfig`; names the inputs and outputs, and where the weights come from.
      check_inputs: of each method, one array for each of `config.input_names`. The export is loaded
        and run with these before it appears under its name, whole.

    Raises:
      ValueError: the outputs depend on a Python function, or on weights that are missing.
      RuntimeError: the export does not compute what the model computes.
    """

    def __init__(self, config: PredictConfig) -> None:
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
        """

        def load(_: tf.Session) -> None:
            tf.import_graph_def(tf.GraphDef.FromString(graph), name="")

        with _open_model(self.config, *_PYTHON, *_TABLES) as model:
            graph = _freeze(model, optimize).SerializeToString()
            _check(model, check_inputs, load)
        target = os.path.abspath(os.fsdecode(filename))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open_atomic(target) as file:
            file.write(graph)
        logger.info(f"The model is exported to {target}.")

    def export_serving(
        self,
        filename: PathLike,
        tags: Tags = None,
        signature_name: str = "prediction_pipeline",
        check_inputs: Arrays = None,
    ) -> None:
        """Writes a SavedModel, as TensorFlow Serving and `tf.saved_model.load` take it.

        Args:
          filename: of the directory, which must be empty or not exist.
          tags: by default `["serve"]`.
          signature_name: of the signature, whose inputs and outputs have the names in the config.
            It is also there as "serving_default".
        """
        target = os.path.abspath(os.fsdecode(filename))
        if is_pattern(target):
            raise ValueError(f"TensorFlow loads nothing from {target!r}: leave out [ and \\.")
        if os.path.exists(target) and os.listdir(target):
            raise FileExistsError(f"{target} is not empty: remove it, or count, as in serving/1.")
        parent = os.path.dirname(target)
        os.makedirs(parent, exist_ok=True)
        tags = [tags] if isinstance(tags, str) else list(tags or [tf.saved_model.SERVING])
        with TemporaryDirectory(dir=parent) as folder, _open_model(self.config, *_PYTHON) as model:
            path = os.path.join(folder, "model")
            signature = tf.saved_model.predict_signature_def(
                dict(zip(names_without_output(self.config.input_names), model.input_tensors)),
                dict(zip(names_without_output(self.config.output_names), model.output_tensors)),
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
            _check(model, check_inputs, lambda sess: tf.saved_model.load(sess, tags, path))
            os.replace(path, target)
        logger.info(f"The model is exported to {target}.")

    def export_npz(self, filename: PathLike) -> None:
        """Writes the variables that the outputs depend on, for `SmartInit` or NumPy, as `.npz`."""
        with _open_model(self.config) as model:
            used = set(ancestors(model.output_tensors, fed=model.input_tensors))
            variables = {var.op.name: var for var in tf.global_variables() if var.op in used}
            save_checkpoint_vars(model.sess.run(variables), filename)
        logger.info(f"{len(variables)} variables are exported to {os.fsdecode(filename)}.")


class ModelExport:
    """Exports a model for TensorFlow Serving, in the spelling of 2017; see `ModelExporter`."""

    def __init__(self, model: Any, input_names: Sequence[str], output_names: Sequence[str]) -> None:
        self.model, self.input_names, self.output_names = model, input_names, output_names

    def export(
        self,
        checkpoint: str,
        export_path: PathLike,
        version: int = 1,
        tags: Tags = None,
        signature_name: str = "prediction_pipeline",
    ) -> None:
        """Writes a SavedModel with the weights of a checkpoint to `{export_path}/{version}`."""
        config = PredictConfig(
            self.model,
            input_names=self.input_names,
            output_names=self.output_names,
            session_init=SmartInit(checkpoint),
        )
        target = os.path.join(os.fsdecode(export_path), str(version))
        ModelExporter(config).export_serving(target, tags, signature_name)


@contextmanager
def _open_model(config: PredictConfig, *refused: str) -> Iterator[OfflinePredictor]:
    """Gives the model, in its graph, if it has no ops of some types."""
    with OfflinePredictor(config) as model, model.graph.as_default():
        for op in ancestors(model.output_tensors, fed=model.input_tensors):
            if op.type in refused:
                raise ValueError(
                    f"{op.name} is a {op.type}. An export has no Python functions: feed what they "
                    "return, see `input_names`. Only a SavedModel, by export_serving(), has tables."
                )
        yield model


def _freeze(model: OfflinePredictor, optimize: bool) -> Any:
    """Returns the graph with constants for variables and placeholders for inputs."""
    graph_def = model.graph.as_graph_def()
    fed = {tensor.op.name: tensor for tensor in model.input_tensors if len(tensor.op.outputs) == 1}
    for node in graph_def.node:
        node.attr.pop("_class", None)  # names ops to be beside, which may not be in the export
        if node.name in fed and node.op != "Placeholder":
            tensor = fed[node.name]
            node.Clear()
            node.name, node.op = tensor.op.name, "Placeholder"
            node.attr["dtype"].type = tensor.dtype.base_dtype.as_datatype_enum
            node.attr["shape"].shape.CopyFrom(tensor.shape.as_proto())
        elif optimize and node.op in ("CheckNumerics", "PreventGradient", "StopGradient"):
            node.op = "Identity"  # without its check, whose output TensorFlow would cut off
            node.attr.pop("message", None)
    names = sorted({tensor.op.name for tensor in [*model.input_tensors, *model.output_tensors]})
    graph_def = tf.graph_util.convert_variables_to_constants(model.sess, graph_def, names)
    if optimize:  # which returns the nodes alone
        nodes = tf.graph_util.remove_training_nodes(graph_def, names).node
        graph_def = tf.GraphDef(node=nodes, library=graph_def.library, versions=graph_def.versions)
    # An older TensorFlow refuses an attribute that it does not know, also at its default.
    return tf.train.export_meta_graph(
        graph_def=graph_def, collection_list=[], clear_devices=True, strip_default_attrs=True
    ).graph_def


def _check(model: OfflinePredictor, arrays: Arrays, load: Callable[[tf.Session], None]) -> None:
    """Raises RuntimeError if what is loaded does not compute what the model computes."""
    if arrays is None:
        return
    names = [tensor.name for tensor in model.output_tensors]
    feed = {tensor.name: array for tensor, array in zip(model.input_tensors, arrays)}
    expected = model.sess.run(names, feed)
    with tf.Graph().as_default(), tf.Session(config=get_default_sess_config()) as sess:
        load(sess)
        computed = sess.run(names, feed)
    for tensor, ours, theirs in zip(model.output_tensors, expected, computed):
        try:
            if np.issubdtype(tensor.dtype.as_numpy_dtype, np.inexact):
                largest = np.max(np.abs(ours[np.isfinite(ours)]), initial=0)
                np.testing.assert_allclose(theirs, ours, rtol=0, atol=_TOLERANCE * largest)
            else:
                np.testing.assert_array_equal(theirs, ours)
        except AssertionError as error:
            raise RuntimeError(
                f"The export computes another {tensor.name} than the model: {error}"
            ) from None
    logger.info("The export computes what the model computes.")
