"""Knows which TensorFlow is installed, and gives its graph-mode interface under one name.

Everything else in the package asks this module and never TensorFlow itself, so whatever differs
between TensorFlow 1.15 and 2.x is found here. Nothing is patched and no setting is changed.
"""

import re
from typing import Any, Callable, List, Optional, Sequence, Tuple

import tensorflow.compat.v1 as tfv1

try:
    from tensorflow.core.protobuf.config_pb2 import CallableOptions as _CallableOptions
except ImportError:
    _CallableOptions = None

__all__ = ["TensorSpec", "is_tfv2", "make_raw_callable", "tf_version", "tfv1"]

TensorSpec = tfv1.TensorSpec


def tf_version() -> Tuple[int, int, int]:
    """Returns the version of TensorFlow as numbers, such as `(2, 21, 0)`."""
    numbers = [int(each) for each in re.findall(r"\d+", tfv1.__version__)]
    major, minor, patch = (numbers + [0, 0, 0])[:3]
    return major, minor, patch


def is_tfv2() -> bool:
    """Returns whether a TensorFlow 2 is installed."""
    return tf_version()[0] >= 2


def make_raw_callable(
    sess: Any,
    fetches: Sequence[Any],
    targets: Sequence[Any],
    feeds: Sequence[Any],
    in_caller: bool = False,
) -> Optional[Callable[..., List[Any]]]:
    """Returns a function from arrays, one for each fed tensor, to the values of the fetched ones.

    It looks at nothing: neither dtypes nor shapes of the arrays, see `tfutils.prepared`, and nor
    does it say where in the program a failing op was made. TensorFlow has it under a private name,
    and costs a fifth of what `Session.run` with a feed does.

    Args:
      sess: a session that runs in this process.
      fetches: tensors.
      targets: ops that merely run.
      feeds: tensors.
      in_caller: whether the thread that calls also computes, which is for graphs of an op or two.

    Returns:
      None if this TensorFlow, or this kind of session, cannot do it.
    """
    make = getattr(sess, "_make_callable_from_options", None)
    if make is None or _CallableOptions is None or getattr(sess, "sess_str", None):
        return None
    options = _CallableOptions(
        fetch=[each.name for each in fetches],
        target=[each.name for each in targets],
        feed=[each.name for each in feeds],
    )
    if in_caller:
        options.run_options.inter_op_thread_pool = -1
    return make(options)
