"""Traces the ops of a step."""

import os
from typing import Any

from tensorpack.compat import step_trace
from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.atomic import write_atomic

from .base import Callback

__all__ = ["GraphProfiler"]


class GraphProfiler(Callback):
    """Traces the steps in full, each into files of its own in the log directory.

    A traced step takes several times as long as another one, and its files may have megabytes, so
    let it trace few of them::

        PeriodicCallback(GraphProfiler(), every_k_steps=1000)
        EnableCallbackIf(GraphProfiler(), lambda self: self.global_step in (100, 101))

    Where a step has several runs of the session, the last one stays.

    Args:
      dump_metadata: whether to write the `tf.RunMetadata` as `runmetadata-{global_step}.pb`.
      dump_tracing: whether to write `chrome-trace-{global_step}.json`, to be opened in
        https://ui.perfetto.dev or chrome://tracing.
      dump_event: whether to put it to the monitors as an event with the tag `trace-{global_step}`.

    Raises:
      RuntimeError: a file is to be written, but the log directory has not been set.
    """

    def __init__(
        self, dump_metadata: bool = False, dump_tracing: bool = True, dump_event: bool = False
    ) -> None:
        if not (dump_metadata or dump_tracing or dump_event):
            raise ValueError("GraphProfiler writes nothing: switch one of its dumps on.")
        directory = logger.get_logger_dir()
        if directory is None and (dump_metadata or dump_tracing):
            raise RuntimeError(
                "GraphProfiler writes to the log directory: call logger.set_logger_dir() or "
                "logger.auto_set_dir() before making it."
            )
        self._directory = directory or ""
        self._dump_metadata = dump_metadata
        self._dump_tracing = dump_tracing
        self._dump_event = dump_event
        self._warned = False
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        self._request = tf.train.SessionRunArgs(fetches=[], options=options)

    def _before_run(self, ctx: tf.train.SessionRunContext) -> tf.train.SessionRunArgs:
        if not self._warned:
            self._warned = True
            logger.warning("GraphProfiler traces steps: those are much slower than the others.")
        return self._request

    def _after_run(self, ctx: tf.train.SessionRunContext, run_values: Any) -> None:
        metadata, step = run_values.run_metadata, self.global_step
        if self._dump_metadata:
            self._write(f"runmetadata-{step}.pb", metadata.SerializeToString())
        if self._dump_tracing:
            self._write(f"chrome-trace-{step}.json", step_trace(metadata.step_stats).encode())
        if self._dump_event:
            traced = {"tag": f"trace-{step}", "run_metadata": metadata.SerializeToString()}
            self.trainer.monitors.put_event(tf.Event(tagged_run_metadata=traced))

    def _write(self, name: str, content: bytes) -> None:
        write_atomic(os.path.join(self._directory, name), content)
