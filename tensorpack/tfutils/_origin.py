"""Finds the lines of the user's program at which ops were made."""

import re
from traceback import walk_tb
from typing import Any, Iterator, Optional

from tensorpack.compat import forward_op
from tensorpack.compat import tfv1 as tf
from tensorpack.utils._tracebacks import is_of_user

_NODE = re.compile(r"\{\{node ([^}\s]+)\}\}|\[\[node ([^\s\]]+)")


def line_of_op(op: Any) -> Optional[str]:
    """Returns where an op was made, such as `train.py:12, in build_graph`; None if unknown.

    That is the innermost line outside of this package and TensorFlow.
    """
    users = [entry for entry in getattr(op, "traceback", None) or () if is_of_user(entry[0])]
    return _line(*users[-1][:3]) if users else None


def line_of_failure(error: BaseException, graph: tf.Graph) -> Optional[str]:
    """Returns which op of a graph has failed in a run and where it was made; None if unknown.

    Of a gradient, it names the op that it is the gradient of; and also what was made eagerly.
    """
    if not isinstance(error, tf.errors.OpError):
        return _made_eagerly(error) if "EagerTensor" in str(error) else None
    for name in _names_in(error):
        try:
            op = forward_op(graph.get_operation_by_name(name))
        except (KeyError, ValueError):
            continue
        line = line_of_op(op)
        if line is not None:
            return f"The op {op.name!r} ({op.type}) was made at {line}."
    return None


def _made_eagerly(error: BaseException) -> str:
    variables = [
        value.name
        for frame, _ in walk_tb(error.__traceback__)
        if not is_of_user(frame.f_code.co_filename)  # those may have others
        for value in frame.f_locals.values()
        if hasattr(type(value), "read_value")  # those of TensorFlow 2 are no `tf.Variable`
        if not hasattr(getattr(value, "handle", value), "graph")
    ]
    what = f"Variable {variables[-1]!r}" if variables else "A variable or tensor"
    return (
        f"{what} was made before the trainer, while TensorFlow executed eagerly, so it is in no "
        "graph. Make it in build_graph() or optimizer(), or call "
        "tf.compat.v1.disable_eager_execution() first thing in the program."
    )


def _names_in(error: Any) -> Iterator[str]:
    if error.op is not None:
        yield error.op.name
    for quoted, bracketed in _NODE.findall(str(error.message)):
        yield quoted or bracketed


def _line(path: str, number: int, function: str) -> str:
    where = "" if function == "<module>" else f", in {function}"
    return f"{path}:{number}{where}"
