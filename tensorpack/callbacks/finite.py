"""Detects costs and weights that are NaN or infinite before they replace good ones."""

import math
from typing import Any, Dict, Mapping, Optional, Sequence, Union

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.summary import average_states
from tensorpack.utils.checks import as_list

from .base import Callback


class NonFiniteError(FloatingPointError):
    """A tensor that must stay finite became NaN or infinite."""


class StopIfNonFinite(Callback):
    """Ends the run in the step in which a scalar is NaN or infinite, with a `NonFiniteError`.

    No callback of the epoch saves the weights of that step: the newest checkpoint is older. A
    trainer with one cost has one of these for its cost, which also shows it: if the model makes no
    summary, it puts the mean over the steps of each epoch, as `cost`.

    Args:
      tensors: scalar tensors of the training tower, or their names.

    Attributes:
      tensors: the same, as a list, which may grow until the callback is set up.
      shown_as: the name under which the mean is put after each epoch; None, the default, for never.
    """

    _chief_only = False
    follows = True  # a script's callbacks see the step that ends the run
    shown_as: Optional[str] = None

    def __init__(self, tensors: Sequence[Union[str, tf.Tensor]]) -> None:
        self._sum, self._count = 0.0, 0  # of the values of this epoch
        self.tensors = [tensors] if isinstance(tensors, str) else as_list(self, "tensors", tensors)

    def _setup_graph(self) -> None:
        names = [tensor if isinstance(tensor, str) else tensor.name for tensor in self.tensors]
        tensors = self.get_tensors_maybe_in_tower(names)
        for tensor in tensors:
            if tensor.shape.ndims != 0:
                raise ValueError(
                    f"StopIfNonFinite: {tensor.name} has shape {tensor.shape}, not []."
                )
        self._names = [tensor.op.name for tensor in tensors]
        self._request = tf.train.SessionRunArgs(tensors[0] if len(tensors) == 1 else tensors)

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        return self._request

    def _after_run(self, ctx: tf.train.SessionRunContext, run_values: Any) -> None:
        values = [run_values.results] if len(self._names) == 1 else run_values.results
        for name, value in zip(self._names, values):
            if not math.isfinite(value):
                raise NonFiniteError(
                    f"{name} is {value} at global_step {self.global_step}. Look at the data of "
                    "this step, the learning rate, and what the cost divides by or takes a "
                    "logarithm of; the newest checkpoint is from before this step."
                )
            self._sum, self._count = self._sum + float(value), self._count + 1

    def _after_epoch(self) -> None:
        if self.shown_as is not None and self._count:
            self.trainer.monitors.put_scalar(self.shown_as, self._sum / self._count)
        self._sum, self._count = 0.0, 0

    def state_dict(self) -> Dict[str, Any]:
        return {"sum": self._sum, "count": self._count} if self.shown_as is not None else {}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._sum, self._count = state["sum"], state["count"]


class FiniteCheck:
    """Finds variables that are not finite, when asked: before a save, for example.

    It checks the values by name, variables or tensors, on their devices, and fetches one number for
    each. It skips integers, and moving averages of summaries, which the training does not use.
    """

    def __init__(self, values: Mapping[str, Union[tf.Variable, tf.Tensor]]) -> None:
        floats = {key: value for key, value in values.items() if value.dtype.is_floating}
        averages = {var.op.name for var in average_states()}
        self._values = {key: value for key, value in floats.items() if key not in averages}
        self._squares = []
        with tf.name_scope("FiniteCheck"):
            for value in self._values.values():
                with value.graph.colocate_with(value.op):
                    self._squares.append(tf.nn.l2_loss(tf.cast(value, tf.float32)))

    def first_bad(self, sess: tf.Session) -> Optional[str]:
        """Returns the name of the first variable with a NaN or an infinity in it, or None."""
        for (name, value), square in zip(self._values.items(), sess.run(self._squares)):
            # The square of a large number is infinite, too: only then the variable is fetched.
            if not (math.isfinite(square) or np.isfinite(sess.run(value).astype("f8")).all()):
                return name
        return None
