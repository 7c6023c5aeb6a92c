"""Lets layers of TensorFlow and of this package share variables and checkpoints."""

from typing import Any, Callable

from tensorpack.tfutils.varreplace import custom_getter_scope

__all__ = ["rename_tflayer_get_variable"]

_NAMES = {
    "bias": "b",
    "kernel": "W",
    "moving_mean": "mean/EMA",
    "moving_variance": "variance/EMA",
}


def rename_tflayer_get_variable() -> Any:
    """Returns a context in which layers of `tf.layers` name their variables as ours do. ::

        with rename_tflayer_get_variable():
            x = tf.layers.conv2d(x, 32, 3, name="conv0")    # conv0/W and conv0/b

    `kernel`, `bias`, `moving_mean` and `moving_variance` become `W`, `b`, `mean/EMA` and
    `variance/EMA`; `beta` and `gamma` are the same in both. It holds for every `tf.get_variable`
    within the block.
    """

    def rename(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        scope, slash, last = name.rpartition("/")
        return getter(scope + slash + _NAMES.get(last, last), *args, **kwargs)

    return custom_getter_scope(rename)
