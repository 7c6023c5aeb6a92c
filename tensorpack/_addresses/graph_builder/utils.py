"""`tensorpack.graph_builder.utils` of older versions; see `tensorpack.graph_builder`."""

from contextlib import ExitStack
from typing import Any, Callable, ContextManager, List, Tuple

from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder import LeastLoadedDeviceSetter, allreduce_grads
from tensorpack.graph_builder.allreduce import average_grads as mean_grads
from tensorpack.tfutils.varreplace import custom_getter_scope

__all__ = [
    "LeastLoadedDeviceSetter",
    "OverrideCachingDevice",
    "OverrideToLocalVariable",
    "aggregate_grads",
    "allreduce_grads",
    "average_grads",
    "override_to_local_variable",
]


class OverrideCachingDevice:
    """Is a custom getter whose variables are cached on the one of `devices` that has the least so
    far; one below the threshold, in elements, on the device for small ones.
    """

    def __init__(
        self, devices: Any, device_for_small_variables: str, small_variable_size_threshold: int
    ) -> None:
        self._sizes = dict.fromkeys(devices, 0)
        self._small, self._threshold = device_for_small_variables, small_variable_size_threshold

    def __call__(self, getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        size = tf.TensorShape(kwargs["shape"]).num_elements()
        if size is None or not kwargs.get("trainable", True):
            return getter(*args, **kwargs)
        device = self._small
        if size >= self._threshold:
            device = min(self._sizes, key=lambda each: self._sizes[each])
            self._sizes[device] += size
        return getter(*args, **{**kwargs, "caching_device": device})


def OverrideToLocalVariable(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Is a custom getter whose new variables are local ones instead of global ones."""
    keys = kwargs.get("collections") or [tf.GraphKeys.GLOBAL_VARIABLES]
    local = {tf.GraphKeys.GLOBAL_VARIABLES: tf.GraphKeys.LOCAL_VARIABLES}
    return getter(*args, **{**kwargs, "collections": [local.get(key, key) for key in keys]})


def override_to_local_variable(enable: bool = True) -> ContextManager:
    """Returns a context in which `tf.get_variable` makes local variables, if `enable`."""
    return custom_getter_scope(OverrideToLocalVariable) if enable else ExitStack()


def aggregate_grads(
    all_grads: Any, colocation: bool = False, devices: Any = None, average: bool = True
) -> List[Tuple[Any, Any]]:
    """Returns the mean, or the sum, of the gradients that towers have of each variable.

    Args:
      all_grads: for each tower its (gradient, variable); the variables are the same.
      colocation, devices: have no use: a mean is on the device of its variable.
    """
    means = mean_grads(all_grads)
    return means if average else [(grad * len(all_grads), variable) for grad, variable in means]


average_grads = aggregate_grads  # its name of 0.7
