"""Writes event files, which TensorBoard shows."""

import os
import re
import socket
import time
from typing import Any, Callable, Dict, Iterator, List, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils._directory_lock import absolute_directory

from .._disk import survive
from ..monitor import MonitorBase

_NAME = re.compile(r"events\.out\.tfevents\.(\d{10})\.")
_SUFFIX = ".tensorpack"  # of the files of this writer
_HEADER_BYTES, _FOOTER_BYTES = 12, 4  # the length of a record and a checksum; a checksum


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
        self._writer: Any = None
        self._path, self._size = "", 0  # of the last file, and its bytes after the last flush
        self._last_step = float("inf")  # of the epoch of the file
        self._failed = self._warned = False  # until the next epoch, until the end

    def _setup_graph(self) -> None:
        self._logdir = self._logdir or logger.get_logger_dir() or ""
        if not self._logdir:
            logger.warning("No events are written: there is no log directory to put them in.")

    def _before_train(self) -> None:
        if self._writer is None:
            self._attempt(self._open)

    def process_summary(self, summary: tf.Summary) -> None:
        self.process_event(tf.Event(step=self.global_step, summary=summary))

    def process_event(self, evt: tf.Event) -> None:
        self._attempt(lambda: self._append(evt))

    def _trigger_epoch(self) -> None:
        self.trigger()
        self._failed = False

    def _trigger(self) -> None:
        self._attempt(self._flush)
        self._last_step = self.global_step

    def _after_train(self) -> None:
        self._attempt(self._close)

    def state_dict(self) -> Dict[str, Any]:
        """Says where the file ends, in which there may be more of the current step later."""
        self._attempt(self._flush)
        if self._first != []:
            return dict(self._state)
        return {"file": os.path.basename(self._path), "size": self._size}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        self._state = dict(state)

    def _append(self, event: tf.Event) -> None:
        if self._split_files and self.global_step > self._last_step:
            self._close()
        if self._writer is None:
            self._open()
        self._write(event)
        self._waiting += 1
        late = time.monotonic() - self._last_flush > self._flush_secs
        if self._waiting > self._max_queue or late:
            self._flush()

    def _open(self) -> None:
        os.makedirs(self._logdir, exist_ok=True)
        names = list(filter(_NAME.match, os.listdir(self._logdir)))
        # Readers take files in the order of their names, wherever the clock has jumped to.
        stamp = max([int(time.time()), *(int(name.split(".")[3]) + 1 for name in names)])
        name = f"events.out.tfevents.{stamp:010d}.{socket.gethostname()}{_SUFFIX}"
        self._path, self._size = os.path.join(self._logdir, name), 0
        self._last_step = float("inf")
        self._writer = tf.io.TFRecordWriter(self._path)
        if self._first is None:
            self._first = list(self._first_events(self.global_step, names))
        for event in [tf.Event(file_version="brain.Event:2"), *self._first]:
            self._write(event)
        self._flush()
        self._first = []

    def _first_events(self, step: int, names: List[str]) -> Iterator[tf.Event]:
        """Yields what a run begins with at a step, in a directory with event files."""
        file = self._state.get("file")
        if file not in names:
            yield tf.Event(step=step, graph_def=self.graph.as_graph_def().SerializeToString())
        if step or any(name.endswith(_SUFFIX) for name in names):
            # TensorBoard forgets what is there of this step and later ones; but the first START of
            # a directory is to it the beginning of the run, so there are two.
            start = tf.SessionLog(status=tf.SessionLog.START)
            forget = step if file in names or not step else step + 1
            yield from [tf.Event(step=forget, session_log=start)] * 2
            logger.info(f"TensorBoard leaves out events in {self._logdir} from step {forget} on.")
        if file in names:  # but keeps what there was of this step when the state was saved
            path = os.path.join(self._logdir, file)
            yield from summaries_in(path, self._state["size"], step)

    def _write(self, event: tf.Event) -> None:
        event.wall_time = event.wall_time or time.time()
        self._writer.write(event.SerializeToString())

    def _flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()
            self._size = os.path.getsize(self._path)
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
    """Yields the summaries of a step in the records that are the first bytes of an event file."""
    with open(path, "rb") as file:
        while size > 0:
            header = file.read(_HEADER_BYTES)
            length = int.from_bytes(header[:8], "little")
            record = file.read(length + _FOOTER_BYTES)
            if len(record) < length + _FOOTER_BYTES:
                logger.warning(f"{path} is cut off; events of step {step} may be missing.")
                return
            size -= len(header) + len(record)
            event = tf.Event.FromString(record[:length])
            if event.step == step and event.HasField("summary"):
                yield event


TFSummaryWriter = TFEventWriter  # the name of 2017
