"""What all parts of the framework need from a graph: state of its own, names, the global step.

Also the default configuration of sessions, and what a report of a problem should name.
"""

import importlib
import os
import platform
import re
import sys
from typing import Any, Callable, Generic, List, Optional, Sequence, Tuple, TypeVar, Union

from tabulate import tabulate

from tensorpack.compat import tf_version
from tensorpack.compat import tfv1 as tf
from tensorpack.utils.gpu import get_num_gpu
from tensorpack.utils.workers.processes import usable_cores

T = TypeVar("T")
_REPORTED_PACKAGES = ("numpy", "msgpack", "cv2", "zmq", "lmdb", "h5py")
# Environment variables that change a computation, but not those of Terraform, which has secrets.
_SETTING = re.compile("(CUDA|NVIDIA|OMP|TF)_(?!VAR_|TOKEN_|CLI_)")
_STATE_ATTRIBUTE = "_tensorpack_state"


class PerGraph(Generic[T]):
    """One value for each graph, made when first asked for, gone when the graph is gone.

    The values hang on the graph itself. A `WeakKeyDictionary` would do for plain values, but a
    value that refers to a tensor refers to its graph, which would then stay in such a dictionary
    for ever.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make

    def get(self, graph: Optional[tf.Graph] = None) -> T:
        """Returns the value that belongs to `graph`, by default the default graph."""
        if graph is None:
            graph = tf.get_default_graph()
            while hasattr(graph, "outer_graph"):  # that of a branch or a loop of TensorFlow 2
                graph = graph.outer_graph
        values = getattr(graph, _STATE_ATTRIBUTE, None)
        if values is None:
            values = {}
            setattr(graph, _STATE_ATTRIBUTE, values)
        if self not in values:
            values[self] = self._make()
        return values[self]


def get_default_sess_config(mem_fraction: float = 0.99) -> tf.ConfigProto:
    """Returns the session configuration that is used where none is given.

    Ops that have no kernel for their device go elsewhere, GPU memory is taken as it is needed,
    and the number of threads is left to TensorFlow.

    Args:
      mem_fraction: share of the memory of each GPU that may be taken; above 1 it is shared with the
        memory of the machine.
    """
    config = tf.ConfigProto(allow_soft_placement=True)
    config.gpu_options.per_process_gpu_memory_fraction = mem_fraction
    config.gpu_options.allow_growth = True
    return config


def get_global_step_var() -> tf.Variable:
    """Returns the global step of the default graph, which is created at the first call.

    It is an int64 scalar named `global_step`, on the CPU, not trainable, whatever the scopes,
    devices and control dependencies are under which it is asked for. TensorFlow's own
    `tf.train.get_global_step` finds it as well.
    """
    keys = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.GLOBAL_STEP]
    with tf.get_default_graph().as_default(), tf.device("/cpu:0"):  # also while eager, in 2
        existing = tf.train.get_global_step()
        if existing is not None:
            return existing
        return root_variable("global_step", [], tf.int64, tf.zeros_initializer(), collections=keys)


def root_variable(
    name: str, shape: Any, dtype: tf.DType, initializer: Any, **options: Any
) -> tf.Variable:
    """Returns a new untrainable variable of exactly this name, whatever scopes are open."""
    root = tf.VariableScope(reuse=False, name="")
    with tf.variable_scope(root, auxiliary_name_scope=False), tf.name_scope(None):
        return tf.get_variable(name, shape, dtype, initializer, trainable=False, **options)


def get_global_step_value() -> int:
    """Returns the value of the global step in the default session."""
    session = tf.get_default_session()
    if session is None:
        raise RuntimeError("The global step has a value only in a session: call this under one.")
    with session.graph.as_default():
        return int(session.run(get_global_step_var()))


def as_signature(described: Sequence[Any]) -> List[tf.TensorSpec]:
    """Returns a spec with a name of its own for each input of a model.

    Args:
      described: for each a `tf.TensorSpec`, an `InputDesc` of 2017, or a placeholder.
    """
    specs = []
    for spec in described:
        if isinstance(spec, tf.Tensor):
            spec = tf.TensorSpec(spec.shape, spec.dtype, spec.op.name)
        elif getattr(spec, "_fields", None) == ("type", "shape", "name"):
            spec = tf.TensorSpec(spec.shape, spec.type, spec.name)
        elif not isinstance(spec, tf.TensorSpec):
            raise TypeError(
                f"An input must be a tf.TensorSpec, an InputDesc or a placeholder, got {spec!r}."
            )
        specs.append(spec)
    names = [spec.name for spec in specs]
    if not all(names) or len(set(names)) < len(names):
        raise ValueError(f"Each input needs a name of its own, got {names}.")
    return specs


def get_op_tensor_name(name: str) -> Tuple[str, str]:
    """Splits a name of an op or tensor: `a` gives `("a", "a:0")`, `a:10` gives `("a", "a:10")`."""
    op_name, colon, _ = name.partition(":")
    return op_name, name if colon else f"{name}:0"


def get_tensors_by_names(names: Sequence[str]) -> List[tf.Tensor]:
    """Returns the tensors of these names in the default graph, see `get_tensor_of_graph`."""
    return [get_tensor_of_graph(tf.get_default_graph(), name) for name in names]


def get_tensor_of_graph(graph: tf.Graph, name: str) -> tf.Tensor:
    """Returns a tensor by name; a bare op name means output 0, that of a variable its value."""
    tensor = graph.get_tensor_by_name(get_op_tensor_name(name)[1])
    if tensor.dtype == tf.resource:  # the name of a variable is that of its handle
        for key in (tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.LOCAL_VARIABLES):
            for variable in graph.get_collection(key):
                if getattr(variable, "handle", None) is tensor:
                    return graph.as_graph_element(variable)
    return tensor


def get_op_or_tensor_by_name(
    name: Union[str, Sequence[str]],
) -> Union[tf.Operation, tf.Tensor, List[Union[tf.Operation, tf.Tensor]]]:
    """Returns the tensor `op:0`, or the operation `op`; for a list of names, a list of these."""
    if not isinstance(name, str):
        return [get_op_or_tensor_by_name(item) for item in name]
    graph, is_tensor = tf.get_default_graph(), get_op_tensor_name(name)[1] == name
    return get_tensor_of_graph(graph, name) if is_tensor else graph.get_operation_by_name(name)


def precise(x: tf.Tensor) -> tf.Tensor:
    """Returns numbers to be summed up: as float32, if they are integers or, as float16, shorter."""
    is_long = x.dtype.is_floating and x.dtype.base_dtype.size >= 4
    return x if is_long else tf.cast(x, tf.float32)


def get_tf_version_tuple() -> Tuple[int, int]:
    """Returns the major and minor version of TensorFlow, such as `(1, 15)`."""
    return tf_version()[:2]


def get_tf_version_number() -> float:
    """Returns the version of TensorFlow as a number, as in 2017: 1.9 if the minor one is beyond."""
    major, minor = get_tf_version_tuple()
    return major + min(minor, 9) / 10


def collect_env_info() -> str:
    """Returns a table of the versions, processors and settings to name when reporting a problem."""
    rows = [
        ("platform", platform.platform()),
        ("python", sys.version.replace("\n", " ")),
        ("tensorpack", sys.modules[__name__.partition(".")[0]].__version__),
        ("tensorflow", f"{tf.__version__} ({tf.__git_version__}, {tf.__compiler_version__})"),
        ("tensorflow with CUDA", tf.test.is_built_with_cuda()),
        *((name, _version_of(name)) for name in _REPORTED_PACKAGES),
        ("processors", f"{usable_cores()} usable of {os.cpu_count()}"),
        ("GPUs", get_num_gpu()),
    ]
    rows += [(name, os.environ[name]) for name in sorted(os.environ) if _SETTING.match(name)]
    return tabulate([(name, str(value)) for name, value in rows], tablefmt="plain")


def _version_of(module: str) -> str:
    try:
        return getattr(importlib.import_module(module), "__version__", "unknown")
    except ImportError as error:
        return f"not importable: {error}"
