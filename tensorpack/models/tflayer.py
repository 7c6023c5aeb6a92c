"""Lets layers of TensorFlow and of this package share variables and checkpoints."""

import functools
from typing import Any, Callable, Dict, Mapping, Sequence

from tensorpack.tfutils.argscope import translate
from tensorpack.tfutils.varreplace import custom_getter_scope
from tensorpack.utils.argtools import get_data_format

from ._legacy_names import WEIGHTS

_MEAN, _VARIANCE = "mean/EMA", "variance/EMA"
_NAMES = {"bias": "b", "kernel": "W", "moving_mean": _MEAN, "moving_variance": _VARIANCE}


def rename_tflayer_get_variable() -> Any:
    """Returns a context in which layers of `tf.layers` name their variables as ours do. ::

        with rename_tflayer_get_variable():
            x = tf.layers.conv2d(x, 32, 3, name="conv0")    # conv0/W and conv0/b

    `kernel`, `bias`, `moving_mean` and `moving_variance` become `W`, `b`, `mean/EMA` and
    `variance/EMA`; `beta` and `gamma` are the same in both. It holds for every `tf.get_variable`
    within the block.
    """
    return rename_get_variable(_NAMES)


def rename_get_variable(mapping: Mapping[str, str]) -> Any:
    """Returns a context that renames variables by the last part of a name: `{"kernel": "W"}`."""

    def rename(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        scope, slash, last = name.rpartition("/")
        return getter(scope + slash + mapping.get(last, last), *args, **kwargs)

    return custom_getter_scope(rename)


def map_common_tfargs(kwargs: Mapping[str, Any]) -> Dict[str, Any]:
    """Returns arguments of 2017 (`W_init`, `b_init`, `nl`, "NCHW") as those of `tf.layers`."""
    arguments = translate("map_common_tfargs", WEIGHTS, kwargs)
    if "data_format" in arguments:
        arguments["data_format"] = get_data_format(arguments["data_format"])
    return arguments


def convert_to_tflayer_args(
    args_names: Sequence[str], name_mapping: Mapping[str, str]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a layer `f(inputs, **kwargs)` with arguments of `tf.layers` to take those of 2017.

    Args:
      args_names: of the positional arguments after the inputs.
      name_mapping: old name -> name, beside those of `map_common_tfargs`.
    """

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def wrapper(inputs: Any, *args: Any, **kwargs: Any) -> Any:
            if len(args) > len(args_names):
                raise TypeError(f"{func.__name__}() takes by position only {args_names}: {args}.")
            arguments = {**dict(zip(args_names, args)), **map_common_tfargs(kwargs)}
            return func(inputs, **translate(func.__name__, name_mapping, arguments))

        return wrapper

    return decorate


def monkeypatch_tf_layers() -> None:
    """Does nothing: what it mended in `tf.layers` was mended in TensorFlow 1.4."""
