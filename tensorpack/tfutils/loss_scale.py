"""Scales a cost up and its gradients down again, for gradients that are computed in float16.

The smallest number of float16 is 6e-8: a smaller number in a gradient becomes zero, unless the cost
is scaled up. The scale is adapted during training.
"""

from typing import Any, List, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.checks import as_count, as_number
from tensorpack.utils.naming import is_loss_scale_name

from .common import root_variable
from .gradproc import map_values, values_of
from .optimizer import GradsAndVars, ProxyOptimizer

_LARGEST = 2.0**24  # what is too small with this was zero before
_SMALLEST = 1.0


class LossScaleOptimizer(ProxyOptimizer):
    """Multiplies the cost by a scale, divides the gradients by it, and adapts the scale.

    A step in which a gradient is not finite changes no variable of the model and no slot: gradient
    processors get zeros in place of all gradients, the innermost optimizer does nothing (the sums
    of an `AccumGradOptimizer` are lost if it is their last step), and the scale is halved. After
    `growth_steps` steps with finite gradients the scale is doubled. It stays in [1, 2**24].

    The scale and the count of good steps are the variables `loss_scale/scale` (float32) and
    `loss_scale/good_steps` (int64), which are saved like all others; those of a second one in the
    graph begin with `loss_scale_1`.

    Args:
      opt: the optimizer, with its gradient processors; changed, if it is a `ProxyOptimizer`.
      initial_scale: what the scale is at first.
      growth_steps: good steps after which it is doubled.
    """

    def __init__(
        self, opt: tf.train.Optimizer, initial_scale: float = 2.0**15, growth_steps: int = 2000
    ) -> None:
        scale = as_number(self, "initial_scale", initial_scale, _SMALLEST, _LARGEST)
        self._growth_steps = as_count(self, "growth_steps", growth_steps)
        outer: Optional[ProxyOptimizer] = None
        innermost = opt
        while isinstance(innermost, ProxyOptimizer):
            outer, innermost = innermost, innermost._opt
        self._guard = _Guard(innermost, "LossScaleGuard")
        if outer is not None:
            outer._opt = self._guard
        super().__init__(self._guard if outer is None else opt, "LossScale")
        first, zero = tf.constant_initializer(scale), tf.zeros_initializer()
        others = sum(is_loss_scale_name(var.op.name) for var in tf.global_variables()) // 2
        scope = f"loss_scale_{others}" if others else "loss_scale"
        options = {"use_resource": True}
        self._scale = root_variable(f"{scope}/scale", [], tf.float32, first, **options)
        self._good_steps = root_variable(f"{scope}/good_steps", [], tf.int64, zero, **options)

    def compute_gradients(self, loss: tf.Tensor, *args: Any, **kwargs: Any) -> List[Any]:
        """Returns the gradients of the cost, computed from the scaled one, in its true size."""
        scale = self._scale.read_value()
        scaled = self._opt.compute_gradients(loss * tf.cast(scale, loss.dtype), *args, **kwargs)
        with tf.name_scope("LossScale"):
            down = 1 / scale
            return [(map_values(g, lambda g: g * tf.cast(down, g.dtype)), v) for g, v in scaled]

    def apply_gradients(
        self, grads_and_vars: GradsAndVars, global_step: Any = None, name: Optional[str] = None
    ) -> tf.Operation:
        """Returns an op that updates if all gradients are finite, and adapts the scale."""
        grads = list(grads_and_vars)
        with tf.name_scope("LossScale"):
            values = [values_of(g) for g, _ in grads if g is not None]
            finite = tf.reduce_all([tf.reduce_all(tf.is_finite(value)) for value in values])
            grads = [
                (map_values(g, lambda g: tf.where_v2(finite, g, tf.zeros_like(g))), v)
                for g, v in grads
            ]
            adapted = self._adapt(finite)
        self._guard.finite = finite
        updated = self._opt.apply_gradients(grads, global_step)
        return tf.group(updated, adapted, name=name)

    def _adapt(self, finite: tf.Tensor) -> tf.Operation:
        """Returns an op that sets the scale and the count for the next step."""
        scale, good = self._scale.read_value(), self._good_steps.read_value() + 1
        full = good >= self._growth_steps
        grown = tf.where(full, tf.minimum(scale * 2, _LARGEST), scale)
        shrunk = tf.maximum(scale / 2, _SMALLEST)
        counts = tf.logical_and(finite, tf.logical_not(full))
        return tf.group(
            self._scale.assign(tf.where(finite, grown, shrunk), read_value=False),
            self._good_steps.assign(good * tf.cast(counts, good.dtype), read_value=False),
        )


class _Guard(ProxyOptimizer):
    """Around the innermost optimizer: updates only if `finite`, which is set before, is true."""

    finite: Optional[tf.Tensor] = None

    def apply_gradients(self, *args: Any, **kwargs: Any) -> tf.Operation:
        def update() -> tf.Tensor:
            with tf.name_scope(None):  # what it makes has the same names without a branch
                updated = self._opt.apply_gradients(*args, **kwargs)
            with tf.control_dependencies([updated]):
                return tf.constant(True)

        return tf.group(tf.cond(self.finite, update, lambda: tf.constant(False)))
