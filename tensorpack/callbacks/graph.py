"""Callbacks that run ops of the graph or read its tensors."""

import io
from typing import Any, Callable, List, Optional, Sequence, Union

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.common import get_op_tensor_name
from tensorpack.utils import logger
from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checks import as_names
from tensorpack.utils.packing.npz import write_npz

from ._disk import LogFiles
from ._images import as_images, to_png
from .base import Callback


class RunOp(Callback):
    """Runs an op: before the training, whenever triggered, or with each run.

    Args:
      op: the op or a tensor of it; or a function without arguments that returns it, called when
        the graph is built, under the name scope of the callback.
      run_before: whether to run it before the training, unless the run is resumed.
      run_as_trigger: whether to run it when triggered, which is every epoch by default.
      run_step: whether to run it along with every run of the hooked session.
      verbose: whether to log each time.
    """

    _chief_only = False

    @accepts_old_keywords(setup_func="op")
    def __init__(
        self,
        op: Union[tf.Operation, tf.Tensor, Callable[[], Any]],
        run_before: bool = True,
        run_as_trigger: bool = True,
        run_step: bool = False,
        verbose: bool = False,
    ) -> None:
        self._make_op = op if callable(op) else lambda: op
        self.run_before = run_before
        self.run_as_trigger = run_as_trigger
        self.run_step = run_step
        self.verbose = verbose

    def _setup_graph(self) -> None:
        op = self._make_op()
        self._op = op if isinstance(op, tf.Operation) else op.op
        self._request = tf.train.SessionRunArgs(self._op)

    def _before_train(self) -> None:
        if self.run_before and not self.trainer.resumed:
            self._run()

    def _trigger(self) -> None:
        if self.run_as_trigger:
            self._run()

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        if not self.run_step:
            return None
        self._log()
        return self._request

    def _run(self) -> None:
        self._log()
        self._op.run()

    def _log(self) -> None:
        if self.verbose:
            logger.info(f"Running Op {self._op.name} ...")


class RunUpdateOps(RunOp):
    """Runs the ops of a collection, `tf.GraphKeys.UPDATE_OPS` by default, along with every run of
    the hooked session: the moving averages of layers such as `BatchNorm`, for example.
    """

    _op_name, _message = "update_ops", "Applying {name} collection of {count} ops."

    def __init__(self, collection: Optional[str] = None) -> None:
        self._collection = tf.GraphKeys.UPDATE_OPS if collection is None else collection
        super().__init__(self._group, run_before=False, run_as_trigger=False, run_step=True)

    def _group(self) -> tf.Operation:
        ops = tf.get_collection(self._collection)
        self.run_step = self.sees_runs = bool(ops)
        if ops:
            name = "UPDATE_OPS" if self._collection == "update_ops" else self._collection
            logger.info(self._message.format(name=name, count=len(ops)))
        return tf.group(*ops, name=self._op_name)


class ProcessTensors(Callback):
    """Calls a function after each run of the hooked session, with one array for each of the tensors
    called `names`, which are computed along with the run.
    """

    def __init__(self, names: Sequence[str], fn: Callable[..., Any]) -> None:
        self._names = as_names(self, "names", names)
        self._fn = fn

    def _setup_graph(self) -> None:
        names = [get_op_tensor_name(name)[1] for name in self._names]
        self._fetches: List[tf.Tensor] = self.get_tensors_maybe_in_tower(names)

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        return self._fetches

    def _after_run(self, ctx: tf.train.SessionRunContext, run_values: Any) -> None:
        self._fn(*run_values.results)


class DumpTensors(ProcessTensors):
    """Writes the values of tensors in each step to `DumpTensor-{global_step}.npz`.

    The file lies in the log directory and has one array for each of the `names`; strings as
    bytes, without NULs at the end.
    """

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(names, self._dump)

    def _setup_graph(self) -> None:
        super()._setup_graph()
        self._files = LogFiles(self)

    def _dump(self, *values: np.ndarray) -> None:
        arrays = map(np.asarray, values)  # strings are objects, which np.load takes for pickles
        plain = [array.astype("S") if array.dtype == object else array for array in arrays]
        content = io.BytesIO()
        write_npz(content, dict(zip(self._names, plain)))
        self._files.write(f"DumpTensor-{self.global_step}.npz", content.getvalue())


DumpTensor = DumpTensors


class DumpTensorAsImage(Callback):
    """Writes a tensor as images when triggered, which is every epoch by default.

    The files are `{prefix}-ep{epoch:03d}.png` in the log directory, which must be set, and for
    further images `{prefix}-ep{epoch:03d}-{i}.png` from i = 1. The monitors get them as the image
    `{prefix}`. The tensor is computed in a run of its own, so it must not need a datapoint; a
    variable does not.

    Args:
      tensor_name: name of the tensor or variable.
      prefix: of the names; the name of the tensor by default, in files with `-` for `/`.
      map_func: turns the value into images, `[H, W]`, `[H, W, C]` or `[N, H, W, C]` with C of 1, 3
        (RGB) or 4, or a list of `[H, W, C]`; by default the value itself is taken.
      scale: the images are multiplied with it, and clipped to [0, 255].
    """

    def __init__(
        self,
        tensor_name: str,
        prefix: Optional[str] = None,
        map_func: Optional[Callable[[Any], Any]] = None,
        scale: float = 255,
    ) -> None:
        op_name, self._tensor_name = get_op_tensor_name(tensor_name)
        self._prefix = op_name if prefix is None else prefix
        self._map_func = map_func
        self._scale = scale

    def _setup_graph(self) -> None:
        self._tensor = self.get_tensors_maybe_in_tower([self._tensor_name])[0]
        self._files = LogFiles(self)

    def _trigger(self) -> None:
        value = tf.get_default_session().run(self._tensor)
        if self._map_func is not None:
            value = self._map_func(value)
        images = as_images(self._prefix, np.asarray(value) * float(self._scale))
        stem = f"{self._prefix.replace('/', '-')}-ep{self.epoch_num:03d}"
        for i, image in enumerate(images):
            name = f"{stem}-{i}.png" if i else f"{stem}.png"
            self._files.write(name, to_png(image))
        self.trainer.monitors.put_image(self._prefix, images)


DumpParamAsImage = DumpTensorAsImage  # the name of 2017


class CheckNumerics(RunOp):
    """Ends the run with an error that names a trainable variable with a NaN or Inf in it: looks
    when triggered, which is every epoch by default, or with `run_step` in every run of the hooked
    session.
    """

    def __init__(self, run_as_trigger: bool = True, run_step: bool = False) -> None:
        super().__init__(self._checks, False, run_as_trigger, run_step)

    @staticmethod
    def _checks() -> tf.Operation:
        checks = [
            tf.check_numerics(var, f"{var.op.name} has a NaN or Inf in it").op
            for var in tf.trainable_variables()
            if var.dtype.is_floating
        ]
        return tf.group(*checks, name="check_numerics")
