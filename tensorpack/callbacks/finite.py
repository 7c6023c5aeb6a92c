"""Ends a run whose cost has become NaN or infinite, before its weights replace good ones."""

import math
from typing import Any, Sequence, Union

from tensorpack.compat import tfv1 as tf

from .base import Callback

__all__ = ["NonFiniteError", "StopIfNonFinite"]


class NonFiniteError(FloatingPointError):
    """A tensor that must stay finite became NaN or infinite."""


class StopIfNonFinite(Callback):
    """Looks at scalars in each step and ends the run when one is NaN or infinite.

    The run ends in that step, so no callback of the epoch saves what the weights have become: the
    newest checkpoint is from before. A trainer of one cost has one for its cost.

    Args:
      tensors: scalar tensors of the training tower, or their names.

    Raises:
      NonFiniteError: in the step; it names the tensor, its value and the step.
    """

    _chief_only = False

    def __init__(self, tensors: Sequence[Union[str, tf.Tensor]]) -> None:
        self._tensors = list(tensors)
        self._request: Any = None

    def _setup_graph(self) -> None:
        names = [each if isinstance(each, str) else each.name for each in self._tensors]
        found = self.get_tensors_maybe_in_tower(names)
        for tensor in found:
            if tensor.shape.ndims != 0:
                raise ValueError(f"StopIfNonFinite looks at scalars, {tensor.name} is none.")
        self._names = [each.op.name for each in found]
        self._request = tf.train.SessionRunArgs(found)

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        return self._request

    def _after_run(
        self, ctx: tf.train.SessionRunContext, run_values: tf.train.SessionRunValues
    ) -> None:
        for name, value in zip(self._names, run_values.results):
            if not math.isfinite(value):
                raise NonFiniteError(
                    f"{name} is {value} at global_step {self.global_step}. Look at the data of "
                    "this step, the learning rate, and what the cost divides by or takes a "
                    "logarithm of; the newest checkpoint is from before this step."
                )
