"""Traces the ops of a step."""

import json
import os
from typing import Any, Dict, List

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.atomic import write_atomic

from .base import Callback

__all__ = ["GraphProfiler", "chrome_trace"]


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
      ValueError: nothing is to be done.
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

    def _after_run(
        self, ctx: tf.train.SessionRunContext, run_values: tf.train.SessionRunValues
    ) -> None:
        metadata, step = run_values.run_metadata, self.global_step
        if self._dump_metadata:
            self._write(f"runmetadata-{step}.pb", metadata.SerializeToString())
        if self._dump_tracing:
            self._write(f"chrome-trace-{step}.json", chrome_trace(metadata.step_stats))
        if self._dump_event:
            traced = {"tag": f"trace-{step}", "run_metadata": metadata.SerializeToString()}
            self.trainer.monitors.put_event(tf.Event(tagged_run_metadata=traced))

    def _write(self, name: str, content: bytes) -> None:
        write_atomic(os.path.join(self._directory, name), content)


def chrome_trace(step_stats: Any) -> bytes:
    """Returns what TensorFlow recorded of a run in the format of Chrome and Perfetto, as JSON.

    Each device is a process with as many threads as it takes, and times are in microseconds from
    the begin of the first op, see
    https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
    """
    devices = sorted(step_stats.dev_stats, key=lambda each: each.device)
    starts = [node.all_start_micros for each in devices for node in each.node_stats]
    events: List[Dict[str, Any]] = []
    for pid, device in enumerate(devices):
        events.append(_name("process_name", pid, 0, device.device))
        events += _ops(device, pid, min(starts, default=0))
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}).encode()


def _ops(device: Any, pid: int, origin: int) -> List[Dict[str, Any]]:
    events: List[Dict[str, Any]] = []
    free_from: List[int] = []  # of each thread
    for node in sorted(device.node_stats, key=lambda each: each.all_start_micros):
        start, duration = node.all_start_micros - origin, max(1, node.all_end_rel_micros)
        free = (tid for tid, time in enumerate(free_from) if time <= start)
        lane = next(free, len(free_from))
        if lane == len(free_from):
            free_from.append(0)
            events.append(_name("thread_name", pid, lane, f"lane {lane}"))
        free_from[lane] = start + duration
        events.append(
            {
                "ph": "X",
                "name": node.node_name,
                "cat": "Op",
                "pid": pid,
                "tid": lane,
                "ts": start,
                "dur": duration,
                "args": {"label": node.timeline_label},
            }
        )
    return events


def _name(what: str, pid: int, tid: int, name: str) -> Dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}}
