"""In which precision a session computes, and whether XLA compiles what it runs.

Both are rewrites that TensorFlow does to a graph when a session first runs it. The graph itself,
its variables and its checkpoints stay float32.
"""

import contextlib
from typing import Any, ContextManager, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

from .devices import have_gpus

PRECISIONS = ("fp32", "bf16", "fp16")

_ON, _OFF = 1, 2  # RewriterConfig.Toggle, which has no public address
_REWRITES = {"bf16": "auto_mixed_precision_onednn_bfloat16", "fp16": "auto_mixed_precision"}
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

    def check(self) -> None:
        """Looks whether this machine has what the precision needs.

        Raises RuntimeError if there is no GPU for "fp16"; warns of a CPU that computes no bfloat16.
        """
        if self.precision == "fp16" and not have_gpus():
            raise RuntimeError(
                f"precision='fp16' has no effect here: TensorFlow {tf.__version__} sees no GPU. On "
                "a CPU use precision='bf16', with TensorFlow 2."
            )
        if self.precision == "bf16" and not _computes_bf16():
            logger.warning(
                f"This CPU has none of {', '.join(sorted(_BF16_FLAGS))}: it computes bfloat16 by "
                "way of float32, which may be slower than precision='fp32'. Without AVX-512, or "
                "with TF_ENABLE_ONEDNN_OPTS=0, all stays float32."
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


def _computes_bf16() -> bool:
    """Whether this CPU has instructions for bfloat16, as far as it is known."""
    try:
        with open(_CPU_INFO, encoding="utf-8") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "").split()
    except OSError:
        return True  # not Linux: unknown
    return not flags or not _BF16_FLAGS.isdisjoint(flags)
