"""Writes event files, which TensorBoard shows."""

import os
import socket
import time
from typing import Any, Callable, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

from ._files import ERRORS, disk_trouble
from .monitor import MonitorBase

__all__ = ["TFEventWriter"]


class TFEventWriter(MonitorBase):
    """Writes the graph, every summary and every event to `events.out.tfevents.*`.

    The records are written on the main thread into the file's buffer, and the buffer to the file
    at the end of each epoch, or earlier as the arguments say. A disk that fails costs one warning
    and the events until the next epoch, when a new file is tried.

    Args:
      logdir: the directory; the log directory by default. Without one, nothing is written.
      max_queue: how many events may wait in the buffer.
      flush_secs: how long they may wait there, in seconds, while others come.
      split_files: whether each epoch gets a file of its own.
    """

    def __init__(
        self,
        logdir: Optional[str] = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        split_files: bool = False,
    ) -> None:
        self._logdir: str = logdir or ""
        self._max_queue = max_queue
        self._flush_secs = flush_secs
        self._split_files = split_files
        self._active = False
        self._failed = False  # until the next epoch
        self._warned = False
        self._writer: Any = None
        self._waiting = 0
        self._last_flush = 0.0

    def _setup_graph(self) -> None:
        self._logdir = self._logdir or logger.get_logger_dir() or ""
        self._active = bool(self._logdir)
        if not self._active:
            logger.warning("logger directory was not set. Ignore TFEventWriter.")

    def _before_train(self) -> None:
        self._write(tf.Event(graph_def=self.graph.as_graph_def().SerializeToString()))
        step = self.global_step
        if step:
            # Tells TensorBoard to forget what an earlier run wrote for the steps to come.
            start = tf.SessionLog(status=tf.SessionLog.START)
            self._write(tf.Event(step=step + 1, session_log=start))
        self._attempt(self._flush)

    def process_summary(self, summary: tf.Summary) -> None:
        """Writes the summary at the present step."""
        self._write(tf.Event(step=self.global_step, summary=summary))

    def process_event(self, evt: tf.Event) -> None:
        """Writes the event."""
        self._write(evt)

    def _trigger_epoch(self) -> None:
        self.trigger()
        self._failed = False

    def _trigger(self) -> None:
        self._attempt(self._flush)
        if self._split_files:
            self._attempt(self._close)

    def _after_train(self) -> None:
        self._attempt(self._close)

    def _write(self, event: tf.Event) -> None:
        if not self._active:
            return
        if not event.wall_time:
            event.wall_time = time.time()
        self._attempt(lambda: self._append(event))

    def _append(self, event: tf.Event) -> None:
        if self._writer is None:
            self._open()
        self._writer.write(event.SerializeToString())
        self._waiting += 1
        late = time.monotonic() - self._last_flush > self._flush_secs
        if self._waiting > self._max_queue or late:
            self._flush()

    def _open(self) -> None:
        os.makedirs(self._logdir, exist_ok=True)
        self._writer = tf.io.TFRecordWriter(_new_file(self._logdir))
        self._last_flush = time.monotonic()
        # The first record of a file names its format.
        first = tf.Event(wall_time=time.time(), file_version="brain.Event:2")
        self._writer.write(first.SerializeToString())

    def _flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()
            self._waiting, self._last_flush = 0, time.monotonic()

    def _close(self) -> None:
        writer, self._writer = self._writer, None
        self._waiting = 0
        if writer is not None:
            writer.close()

    def _attempt(self, action: Callable[[], None]) -> None:
        if self._failed:
            return
        try:
            action()
        except ERRORS as error:
            self._failed = True
            if not self._warned:
                self._warned = True
                reason = disk_trouble(error, self._logdir) or error
                logger.warning(f"Cannot write events to {self._logdir}, they are lost: {reason}")
            self._abandon()

    def _abandon(self) -> None:
        try:
            self._close()
        except ERRORS:
            pass  # the same failure again, which has been reported


def _new_file(directory: str) -> str:
    """Returns a path that does not exist yet."""
    base = os.path.join(
        directory, f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}"
    )
    path, count = base, 0
    while os.path.exists(path):
        count += 1
        path = f"{base}.{count}"
    return path
