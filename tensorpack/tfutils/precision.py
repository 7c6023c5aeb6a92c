"""In which precision a session computes, and whether XLA compiles what it runs.

Both are rewrites that TensorFlow does to a graph when a session first runs it. The graph itself,
its variables and its checkpoints stay float32. Where a rewrite is impossible TensorFlow
continues without it, with no more than a line on stderr; here that is an error.
"""

import contextlib
from typing import Any, ContextManager, List, Optional

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

PRECISIONS = ("fp32", "bf16", "fp16")

_ON, _OFF = 1, 2  # RewriterConfig.Toggle, which has no public address
_REWRITES = {"bf16": "auto_mixed_precision_onednn_bfloat16", "fp16": "auto_mixed_precision"}
_DTYPES = {"bf16": tf.bfloat16, "fp16": tf.float16}
_NEEDS = {
    "bf16": "It is for networks on a CPU, which needs AVX-512 at least, and it needs oneDNN in "
    "TensorFlow (TF_ENABLE_ONEDNN_OPTS=0 turns that off). On a GPU use precision='fp16'.",
    "fp16": "It is for networks on a GPU, of compute capability 7.0 or more. On a CPU use "
    "precision='bf16', with TensorFlow 2.",
}
_BF16_FLAGS = frozenset(["amx_bf16", "avx512_bf16", "avx_ne_convert"])  # of Linux' cpuinfo
_CPU_INFO = "/proc/cpuinfo"

# XLA has random generators of its own, which ignore the seeds of TensorFlow.
_RANDOM_OPS = frozenset(
    "Multinomial RandomShuffle RandomStandardNormal RandomUniform RandomUniformInt "
    "TruncatedNormal".split()
)


class ComputeOptions:
    """How a session computes; the default is what its `tf.ConfigProto` says.

    Args:
      precision: one of `PRECISIONS`, or None for what the config says. "bf16": convolutions and
        matrix products in bfloat16, on the CPU. "fp16": the same in float16, on the GPU; a cost
        has to be scaled then, see `LossScaleOptimizer`. "fp32": neither.
      xla: whether XLA compiles what it can; False is what the config says.
      by_scope: whether `scope` alone says so, for a session whose config does not.
    """

    def __init__(
        self, precision: Optional[str] = None, xla: bool = False, by_scope: bool = False
    ) -> None:
        if precision is not None and precision not in PRECISIONS:
            raise ValueError(
                f"precision must be one of {', '.join(PRECISIONS)}, or None, got {precision!r}."
            )
        self.precision = precision
        self.xla = bool(xla)
        self._by_scope = by_scope or not _config_reaches_cpus()

    @property
    def is_set(self) -> bool:
        """Whether it asks for anything at all."""
        return self.precision is not None or self.xla

    def apply_to(self, config: tf.ConfigProto) -> tf.ConfigProto:
        """Returns a copy of a session config that asks for this."""
        copy = tf.ConfigProto()
        copy.CopyFrom(config)
        if self.precision is not None:
            _set_precision(copy.graph_options.rewrite_options, self.precision)
        if self.xla:
            optimizer = copy.graph_options.optimizer_options
            optimizer.global_jit_level = tf.OptimizerOptions.ON_2
            if _config_reaches_cpus():
                optimizer.cpu_global_jit = True
        return copy

    def scope(self) -> ContextManager[Any]:
        """Returns a context in which towers are to be built.

        TensorFlow 1 compiles ops on a CPU only if they were made in such a scope.
        """
        if not self.xla or not self._by_scope:
            return contextlib.ExitStack()
        return tf.xla.experimental.jit_scope(lambda node: node.op not in _RANDOM_OPS)

    def check(self, config: tf.ConfigProto, target: str = "") -> None:
        """Tries on a small network whether a session with this config does what was asked for.

        Raises:
          RuntimeError: it does not; the message says what it takes.
        """
        if self.precision is not None and self.precision in _DTYPES:
            _check_precision(self.precision, config, target)
        if self.xla:
            nodes = self._try(config, target, "xla=True")
            if not any(node.op in ("XlaLaunch", "_XlaRun") for node in nodes):
                raise RuntimeError(
                    f"xla=True has no effect here: {_who(nodes)} compiled nothing of a small "
                    "network. Install a TensorFlow that was built with XLA, or leave it out."
                )

    def _try(self, config: tf.ConfigProto, target: str, option: str) -> List[Any]:
        """Runs a small network and returns the nodes that were run."""
        with tf.Graph().as_default() as graph:
            image = tf.placeholder(tf.float32, [4, 8, 8, 16])
            with self.scope():
                output = _small_network(image)
        options = tf.RunOptions(output_partition_graphs=True)
        metadata = tf.RunMetadata()
        with tf.Session(target, graph, config) as sess:
            try:
                sess.run(output, {image: np.ones(image.shape.as_list())}, options, metadata)
            except tf.errors.OpError as error:
                raise RuntimeError(
                    f"{option} does not work here: a small network failed with it, as shown "
                    f"above. {_NEEDS.get(self.precision or '', '')}".rstrip()
                ) from error
        return [node for graph_def in metadata.partition_graphs for node in graph_def.node]


def _check_precision(precision: str, config: tf.ConfigProto, target: str) -> None:
    plain = tf.ConfigProto()  # what XLA compiles is not shown
    plain.CopyFrom(config)
    plain.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.OFF
    if _config_reaches_cpus():
        plain.graph_options.optimizer_options.cpu_global_jit = False
    option = f"precision={precision!r}"
    nodes = ComputeOptions(precision)._try(plain, target, option)
    dtype = _DTYPES[precision].as_datatype_enum
    if not any(attr.type == dtype for node in nodes for attr in node.attr.values()):
        raise RuntimeError(
            f"{option} has no effect here: {_who(nodes)} left a small network in float32. "
            f"{_NEEDS[precision]}"
        )
    if precision == "bf16" and _is_emulated():
        logger.warning(
            f"This CPU has none of {', '.join(sorted(_BF16_FLAGS))}: it computes bfloat16 by "
            "way of float32, which may be slower than precision='fp32'."
        )


def _set_precision(rewrites: Any, precision: str) -> None:
    fields = set(rewrites.DESCRIPTOR.fields_by_name)
    field = _REWRITES.get(precision)
    if field is not None and field not in fields:
        raise RuntimeError(
            f"precision={precision!r} needs TensorFlow 2: TensorFlow {tf.__version__} does not "
            f"have the rewrite {field}. Use a newer TensorFlow, or leave precision out."
        )
    for name in sorted(fields.intersection(_REWRITES.values())):
        setattr(rewrites, name, _ON if name == field else _OFF)


def _config_reaches_cpus() -> bool:
    """Whether a config can have XLA compile what runs on CPUs."""
    return "cpu_global_jit" in tf.OptimizerOptions.DESCRIPTOR.fields_by_name


def _small_network(image: tf.Tensor) -> tf.Tensor:
    kernel = tf.reshape(image[0], [2, 2, 16, 16])
    x = tf.nn.relu(tf.nn.conv2d(image, kernel, strides=[1, 1, 1, 1], padding="SAME"))
    x = tf.reshape(x, [64, 64])
    for _ in range(3):
        x = tf.nn.relu(tf.matmul(x, x) * 0.5)
    return tf.reduce_mean(x)


def _who(nodes: List[Any]) -> str:
    devices = sorted({node.device.rpartition("device:")[2] for node in nodes if node.device})
    return f"TensorFlow {tf.__version__} on {', '.join(devices)}"


def _is_emulated() -> bool:
    """Whether this CPU is known to have no instructions for bfloat16."""
    try:
        with open(_CPU_INFO, encoding="utf-8") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "").split()
    except OSError:
        return False  # not Linux: unknown
    return bool(flags) and _BF16_FLAGS.isdisjoint(flags)
