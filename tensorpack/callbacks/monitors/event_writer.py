"""Writes event files, which TensorBoard shows."""

import os
import re
import socket
import time
from contextlib import suppress
from typing import Any, Callable, Dict, Iterator, List, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils._directory_lock import absolute_directory

from .._disk import survive
from ..monitor import MonitorBase

_NAME = re.compile(r"events\.out\.tfevents\.(\d{10})\.")
_SUFFIX = ".tensorpack"  # of the files of this writer
_FRAME_BYTES = 16  # of each record


class TFEventWriter(MonitorBase):
    """Writes the graph, every summary and every event to `events.out.tfevents.*`.

    Records go into the file's buffer, on the main thread, and the buffer goes to the file at the
    end of each epoch, or earlier as the arguments say. A failing disk causes one warning and loses
    the events until the next epoch, when a new file is tried.

    A resumed run begins a file that tells TensorBoard to leave out what was written after the saved
    state, so every value is shown once. Earlier files stay as they are.

    Args:
      logdir: the directory; the log directory by default. Without one, nothing is written.
      max_queue: how many events may wait in the buffer.
      flush_secs: how long they may wait there, in seconds, while others come.
      split_files: whether each epoch gets a file of its own.
    """

    sets_up_last = True  # a saver may set the log directory

    def __init__(
        self,
        logdir: Optional[str] = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        split_files: bool = False,
    ) -> None:
        self._logdir = absolute_directory(logdir)
        self._max_queue = max_queue
        self._flush_secs = flush_secs
        self._split_files = split_files
        self._state: Dict[str, Any] = {}  # of the run that is resumed
        self._first: Optional[List[tf.Event]] = None  # of the run, until they are in a file
        self._step, self._records = -1, []  # type: int, List[bytes]  # the summaries of a step
        self._writer: Any = None
        self._failed = self._warned = False  # until the next epoch, until the end

    def _setup_graph(self) -> None:
        self._logdir = self._logdir or logger.get_logger_dir() or ""
        if not self._logdir:
            logger.warning("No events are written: there is no log directory to put them in.")

    def _before_train(self) -> None:
        self._attempt(self._open)

    def process_summary(self, summary: tf.Summary) -> None:
        self.process_event(tf.Event(step=self.global_step, summary=summary))

    def process_event(self, evt: tf.Event) -> None:
        self._attempt(lambda: (self._open(), self._write(evt)))

    def _trigger_epoch(self) -> None:
        self.trigger()
        self._failed = False

    def _trigger(self) -> None:
        self._attempt(self._close if self._split_files else self._flush)

    def _after_train(self) -> None:
        self._attempt(self._close)

    def state_dict(self) -> Dict[str, Any]:
        """Returns the summaries of the current step; the file may get others of it later."""
        if self._first is None:
            return dict(self._state)
        self._attempt(self._flush)
        return {"step": self.global_step, "records": list(self._records_now())}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._state = dict(state)

    def _open(self) -> None:
        if self._writer is not None:
            return
        os.makedirs(self._logdir, exist_ok=True)
        names = list(filter(_NAME.match, os.listdir(self._logdir)))
        # Readers take files in the order of their names, wherever the clock has jumped to.
        stamp = max([int(time.time()), *(int(name.split(".")[3]) + 1 for name in names)])
        name = f"events.out.tfevents.{stamp:010d}.{socket.gethostname()}{_SUFFIX}"
        self._writer = tf.io.TFRecordWriter(os.path.join(self._logdir, name))
        self._waiting, self._last_flush = 0, time.monotonic()
        if self._first is None:
            self._first = list(self._first_events(self.global_step, names))
        for event in [tf.Event(file_version="brain.Event:2"), *self._first]:
            self._write(event)
        self._flush()
        self._first = []

    def _first_events(self, step: int, names: List[str]) -> Iterator[tf.Event]:
        """Yields what a run begins with at a step, in a directory with event files."""
        state = self._state
        is_old = state.get("file") in names  # an earlier version kept its place in a file
        repeats = is_old or step in (0, state.get("step"))  # what came after the state in this step
        if not (state and names):
            yield tf.Event(step=step, graph_def=self.graph.as_graph_def().SerializeToString())
        if step or any(name.endswith(_SUFFIX) for name in names):
            # TensorBoard forgets what is there of this step and later ones; but the first START of
            # a directory is to it the beginning of the run, so there are two.
            start = tf.SessionLog(status=tf.SessionLog.START)
            yield from [tf.Event(step=step if repeats else step + 1, session_log=start)] * 2
        if repeats:
            yield from map(tf.Event.FromString, state.get("records", ()))
        if is_old:
            yield from summaries_in(os.path.join(self._logdir, state["file"]), state["size"], step)

    def _write(self, event: tf.Event) -> None:
        event.wall_time = event.wall_time or time.time()
        record = event.SerializeToString()
        self._writer.write(record)
        if event.HasField("summary"):
            self._records_now().append(record)
        self._waiting += 1
        late = time.monotonic() - self._last_flush > self._flush_secs
        if self._waiting > self._max_queue or late:
            self._flush()

    def _records_now(self) -> List[bytes]:
        """Returns the list for the summaries of the current step."""
        if self._step != self.global_step:
            self._step, self._records = self.global_step, []
        return self._records

    def _flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()
            self._waiting, self._last_flush = 0, time.monotonic()

    def _close(self) -> None:
        self._flush()
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _attempt(self, action: Callable[[], Any]) -> None:
        message = f"Cannot write events to {self._logdir}, they are lost"
        if self._logdir and not self._failed and survive(action, message, quiet=self._warned):
            self._failed = self._warned = True
            self._writer = None


def summaries_in(path: str, size: int, step: int) -> Iterator[tf.Event]:
    """Yields the summaries of a step that are among the first bytes of an event file."""
    with suppress(tf.errors.DataLossError):  # of a record that was cut off
        for record in tf.io.tf_record_iterator(path):
            event = tf.Event.FromString(record)
            size -= len(record) + _FRAME_BYTES
            if size < 0:
                return
            if event.step == step and event.HasField("summary"):
                yield event


TFSummaryWriter = TFEventWriter  # the name of 2017
