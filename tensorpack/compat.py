"""Knows which TensorFlow is installed, and gives its graph-mode interface under one name.

Everything else in the package asks this module and never TensorFlow itself, so whatever differs
between TensorFlow 1.15 and 2.x is found here. Nothing is patched, and one setting is changed: how
much TensorFlow's C++ code tells of itself, see `docs/runs.md`.
"""

import gc
import importlib
import os
import re
import sys
from typing import Any, Callable, List, Optional, Sequence, Tuple

from tensorpack.utils.optional import require
from tensorpack.utils.signals import reraise_interrupt

# Level 1 leaves out what the C++ code says of each process alike (the instructions of the CPU, the
# services of XLA); warnings and errors are shown. It is read when TensorFlow logs its first line,
# in 1.15 when a session is made, so it must stay set. A program that sets it, or loads
# TensorFlow first, keeps its own choice.
if "tensorflow" not in sys.modules:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

# A collection visits each of the 500,000 objects that this makes, and five of them would take a
# quarter of the time. Afterwards all objects count as old, so that the next ones skip them.
_collects = gc.isenabled() and not gc.get_freeze_count()
try:
    if _collects:
        gc.disable()
    with reraise_interrupt():
        require("tensorflow.compat.v1")  # whose error says what to install
        import tensorflow.compat.v1 as tfv1
        from tensorflow.core.protobuf.config_pb2 import CallableOptions as _CallableOptions
        from tensorflow.python.client.timeline import Timeline as _Timeline
        from tensorflow.python.eager.context import global_seed as _global_seed
finally:
    if _collects:
        gc.freeze()
        gc.unfreeze()
        gc.enable()

__all__ = [
    "TensorSpec",
    "backport_tensor_spec",
    "end_eager_execution",
    "forward_op",
    "gpu_memory_peak",
    "in_branch",
    "is_closed",
    "is_name_of_tf1",
    "is_tfv2",
    "load_keras",
    "local_cli_debug_hook",
    "make_raw_callable",
    "replace_input",
    "run_after",
    "step_trace",
    "tf_version",
    "tfv1",
]

A_YEAR = 365 * 24 * 60 * 60 * 1000  # milliseconds

TensorSpec = tfv1.TensorSpec


def tf_version() -> Tuple[int, int, int]:
    """Returns the version of TensorFlow as numbers, such as `(2, 21, 0)`."""
    numbers = [int(text) for text in re.findall(r"\d+", tfv1.__version__)]
    major, minor, patch = (numbers + [0, 0, 0])[:3]
    return major, minor, patch


def backport_tensor_spec() -> type:
    """Returns `TensorSpec`, which every TensorFlow has here."""
    return TensorSpec


def is_tfv2() -> bool:
    """Returns whether a TensorFlow 2 is installed."""
    return tf_version()[0] >= 2


def end_eager_execution() -> None:
    """Has ops made in graphs from now on; a seed that was set before becomes that of the graph."""
    if tfv1.executing_eagerly():
        graph = tfv1.get_default_graph()
        graph.seed = _global_seed() if graph.seed is None else graph.seed
        tfv1.disable_eager_execution()


def load_keras() -> Any:
    """Returns the Keras that builds graphs: `tf.keras` of TensorFlow 1, tf-keras for 2.

    Where that is missing, the error has a line to install it, which brings no second TensorFlow.
    """
    major, minor, _ = tf_version()
    line = f"--no-deps 'tf-keras=={major}.{minor}.*'"
    return require("tf_keras", line) if is_tfv2() else tfv1.keras


def is_name_of_tf1(error: BaseException) -> bool:
    """Returns whether an error says that TensorFlow 2 lacks a name, such as `tf.placeholder`."""
    missing = isinstance(error, AttributeError) and is_tfv2()
    return missing and bool(re.match(r"module 'tensorflow[.']", str(error)))


def make_raw_callable(
    sess: Any,
    fetches: Sequence[Any],
    targets: Sequence[Any],
    feeds: Sequence[Any],
    in_caller: bool = False,
    waits: bool = False,
) -> Optional[Callable[..., List[Any]]]:
    """Returns a function from arrays, one for each fed tensor, to the values of the fetched ones.

    None if this TensorFlow, or this kind of session, cannot do it. It looks at neither dtypes nor
    shapes of the arrays, see `tfutils.prepared`, and nor does it say where in the program a failing
    op was made. TensorFlow has it under a private name, and it costs a fifth of a `Session.run`
    with a feed. `targets` are ops that merely run.

    Args:
      in_caller: whether the thread that calls also computes, which is for graphs of an op or two.
      waits: whether it may wait for as long as it takes, as an enqueue does for room, even if the
        session has `operation_timeout_in_ms`.
    """
    make = getattr(sess, "_make_callable_from_options", None)
    if make is None or getattr(sess, "sess_str", None):
        return None
    options = _CallableOptions(
        fetch=[tensor.name for tensor in fetches],
        target=[op.name for op in targets],
        feed=[tensor.name for tensor in feeds],
    )
    if in_caller:
        options.run_options.inter_op_thread_pool = -1
    config = getattr(sess, "_config", None)
    if waits and config is not None and config.operation_timeout_in_ms > 0:
        # Only then: a run with a time-out takes a slower way through TensorFlow.
        options.run_options.timeout_in_ms = A_YEAR
    return make(options)


def step_trace(step_stats: Any) -> str:
    """Returns what TensorFlow recorded of a run as a trace for Chrome and Perfetto, in JSON."""
    return _Timeline(step_stats).generate_chrome_trace_format()


def is_closed(sess: Any) -> bool:
    """Returns whether a session was closed; False for one that does not tell."""
    return bool(getattr(sess, "_closed", False))


def in_branch() -> bool:
    """Returns whether ops made now run only if a branch of `tf.cond` or a loop is taken."""
    graph = tfv1.get_default_graph()  # in TensorFlow 2 the branch has one, within the outer graph
    return hasattr(graph, "outer_graph") or graph._get_control_flow_context() is not None


def forward_op(op: Any) -> Any:
    """Returns the op of which an op computes the gradient; the op itself if it computes none."""
    original = getattr(op, "_original_op", None)
    return op if original is None else original


def replace_input(op: Any, index: int, tensor: Any) -> None:
    """Makes an op, which no session has run yet, read another tensor, of like dtype and shape."""
    op._update_input(index, tensor)


def run_after(op: Any, first: Any) -> None:
    """Makes an op, which no session has run yet, run after another one, and never without it."""
    op._add_control_input(first)


def gpu_memory_peak(device: str) -> Callable[[Any], int]:
    """Returns a function of a session: the most bytes that TensorFlow has had in use on a GPU, such
    as "/gpu:0". Call it while the graph is built, to which it adds an op on TensorFlow 1.
    """
    if is_tfv2():
        ask = importlib.import_module("tensorflow").config.experimental.get_memory_info
        return lambda sess: int(ask(device.lstrip("/").upper())["peak"])
    stats = importlib.import_module("tensorflow.contrib.memory_stats")
    with tfv1.device(device):
        peak = stats.MaxBytesInUse()
    return lambda sess: int(sess.run(peak))


def local_cli_debug_hook() -> Callable[..., Any]:
    """Returns the class of the hook by which TensorFlow's own debugger, tfdbg, joins a session."""
    try:
        return importlib.import_module("tensorflow.python.debug").LocalCLIDebugHook
    except (ImportError, AttributeError) as error:
        raise RuntimeError(
            f"TensorFlow {tfv1.__version__} has no tfdbg for sessions. CheckNumerics finds bad "
            "variables, StopIfNonFinite bad costs, and DumpTensors writes tensors to files."
        ) from error
