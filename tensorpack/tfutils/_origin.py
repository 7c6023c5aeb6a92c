"""Finds the lines of the user's program at which ops were made."""

import re
import sys
from types import FrameType
from typing import Any, Iterator, Optional, Tuple

from tensorpack.compat import forward_op
from tensorpack.compat import tfv1 as tf
from tensorpack.utils._tracebacks import is_of_user

_NODE = re.compile(r"\{\{node ([^}\s]+)\}\}|\[\[node ([^\s\]]+)")


def line_of_op(op: Any) -> Optional[str]:
    """Returns where an op was made, such as `train.py:12, in build_graph`; None if unknown.

    That is the innermost line outside of this package and TensorFlow.
    """
    frames = [_parts(each) for each in getattr(op, "traceback", None) or ()]
    users = [each for each in frames if is_of_user(each[0])]
    return _line(*users[-1]) if users else None


def line_of_caller() -> Optional[str]:
    """Returns the innermost line of the user's program that is running, as `line_of_op` does."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and not is_of_user(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    return _line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def line_of_failure(error: BaseException, graph: tf.Graph) -> Optional[str]:
    """Returns which op of a graph has failed in a run and where it was made; None if unknown.

    Of an op that computes a gradient, the op is named whose gradient that is.
    """
    if not isinstance(error, tf.errors.OpError):
        return None
    for name in _names_in(error):
        try:
            op = forward_op(graph.get_operation_by_name(name))
        except (KeyError, ValueError):
            continue
        line = line_of_op(op)
        if line is not None:
            return f"The op {op.name!r} ({op.type}) was made at {line}."
    return None


def _names_in(error: Any) -> Iterator[str]:
    if error.op is not None:
        yield error.op.name
    for found in _NODE.findall(str(error.message)):
        yield found[0] or found[1]


def _parts(frame: Any) -> Tuple[str, int, str]:
    return (
        tuple(frame)[:3] if isinstance(frame, tuple) else (frame.filename, frame.lineno, frame.name)
    )


def _line(path: str, number: int, function: str) -> str:
    where = "" if function == "<module>" else f", in {function}"
    return f"{path}:{number}{where}"
