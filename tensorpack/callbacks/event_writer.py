"""Writes event files, which TensorBoard shows."""

import os
import time
from contextlib import suppress
from typing import Any, Callable, Dict, List, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils._directory_lock import absolute_directory

from ._disk import ERRORS, disk_trouble
from ._event_files import cut_file, drop_file, event_files, mark_of, marked_files, new_file
from .monitor import MonitorBase


class TFEventWriter(MonitorBase):
    """Writes the graph, every summary and every event to `events.out.tfevents.*`.

    Records go into the file's buffer, on the main thread, and the buffer goes to the file at the
    end of each epoch, or earlier as the arguments say. A failing disk causes one warning and loses
    the events until the next epoch, when a new file is tried.

    A resumed run moves the events that were written after its saved state to
    `dropped-events.MMDD-HHMMSS`, so every value is there once. Files of other writers are not
    touched.

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
        self._active = False
        self._failed = False  # until the next epoch
        self._warned = False
        self._id = os.urandom(8).hex()  # the same in all runs that resume each other
        self._files: List[str] = []  # names, also those of earlier runs
        self._path = ""  # of the open file
        self._size = 0  # of it, in bytes, after the last flush
        self._loaded: Optional[Dict[str, Any]] = None  # until the directory is as it says
        self._writer: Any = None
        self._waiting = 0
        self._last_flush = 0.0

    def _setup_graph(self) -> None:
        self._logdir = self._logdir or logger.get_logger_dir() or ""
        self._active = bool(self._logdir)
        if not self._active:
            logger.warning("No events are written: there is no log directory to put them in.")

    def _before_train(self) -> None:
        step, resumed = self.global_step, self._loaded is not None
        self._attempt(self._restore)
        config = self.trainer.config
        if not step and config is not None and config.resume == "auto":
            self._attempt(self._take_out_all)
        if not self._files:
            graph = self.graph.as_graph_def().SerializeToString()
            self._write(tf.Event(step=step, graph_def=graph))
        if step and not resumed:
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

    def state_dict(self) -> Dict[str, Any]:
        if self._loaded is not None:
            return dict(self._loaded)
        if not self._active:
            return {}
        self._attempt(self._flush)
        return {
            "id": self._id,
            "files": list(self._files),
            "file": os.path.basename(self._path),
            "size": self._size,
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores it; the files follow in `before_train`.

        Raises:
          ValueError: it names a file in another directory.
        """
        for name in [state["file"], *state["files"]]:
            if name != os.path.basename(name):
                raise ValueError(f"The state of a TFEventWriter names a file {name!r} elsewhere.")
        self._loaded = {**state, "files": list(state["files"])}
        self._id = state["id"]

    def _restore(self) -> None:
        """Restores the directory to the time of the state."""
        if self._loaded is None or not self._active:
            return
        state, directory = self._loaded, self._logdir
        os.makedirs(directory, exist_ok=True)
        dropped = []
        for name in marked_files(directory, self._id):
            if name not in state["files"]:
                dropped.append(drop_file(os.path.join(directory, name)))
        present = event_files(directory)
        self._files = [name for name in state["files"] if name in present]
        if state["file"] in self._files:
            cut = cut_file(os.path.join(directory, state["file"]), state["size"])
            dropped += [cut] if cut else []
        self._loaded = None
        if dropped:
            where = ", ".join(dropped)
            logger.info(f"Events written after the state of this run were moved to {where}.")
        if len(self._files) < len(state["files"]):
            gone = len(state["files"]) - len(self._files)
            logger.warning(f"{gone} event files of the earlier run are not in {directory}.")

    def _take_out_all(self) -> None:
        """Drops the events of a run that was killed before its first save; this run repeats it."""
        if self._active and os.path.isdir(self._logdir):
            for name in marked_files(self._logdir):
                drop_file(os.path.join(self._logdir, name))

    def _write(self, event: tf.Event) -> None:
        if self._active:
            event.wall_time = event.wall_time or time.time()
            self._attempt(lambda: self._append(event))

    def _append(self, event: tf.Event) -> None:
        self._restore()  # if the disk did not let it before
        if self._writer is None:
            self._open()
        self._writer.write(event.SerializeToString())
        self._waiting += 1
        late = time.monotonic() - self._last_flush > self._flush_secs
        if self._waiting > self._max_queue or late:
            self._flush()

    def _open(self) -> None:
        os.makedirs(self._logdir, exist_ok=True)
        self._path, self._size = new_file(self._logdir), 0
        self._writer = tf.io.TFRecordWriter(self._path)
        self._files.append(os.path.basename(self._path))
        self._last_flush = time.monotonic()
        # The first record of a file names its format.
        for first in (tf.Event(file_version="brain.Event:2"), mark_of(self._id)):
            first.wall_time, first.step = time.time(), self.global_step
            self._writer.write(first.SerializeToString())

    def _flush(self) -> None:
        if self._writer is not None:
            self._writer.flush()
            self._size = os.path.getsize(self._path)
            self._waiting, self._last_flush = 0, time.monotonic()

    def _close(self) -> None:
        writer, self._writer = self._writer, None
        self._waiting = 0
        if writer is not None:
            writer.close()
            self._path = ""

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
        path, self._path = self._path, ""
        with suppress(*ERRORS):  # the same failure again, which has been reported
            self._close()
        if path:
            with suppress(OSError):  # readers stop at half a record; the disk may not let it
                os.truncate(path, self._size)


TFSummaryWriter = TFEventWriter  # the name of 2017
