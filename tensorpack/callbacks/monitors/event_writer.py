"""Writes event files, which TensorBoard shows; names them, finds them, and cuts them."""

import os
import socket
import struct
import time
from contextlib import suppress
from itertools import islice
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils._directory_lock import absolute_directory
from tensorpack.utils.atomic import backup_name, fsync_path, write_atomic

from .._disk import ERRORS, survive
from ..monitor import MonitorBase

_PREFIX = "events.out.tfevents."
_STAMP_DIGITS = 10
_MARK = "tensorpack TFEventWriter "
_DROPPED = "dropped-events"  # TensorBoard reads all files that have "tfevents" in their names
_HEADER = struct.Struct("<QI")  # of a record: how many bytes it has, and a checksum of that
_FOOTER_BYTES = 4  # after the bytes of a record, their checksum
_MARK_BYTES = 1 << 12  # a longer record is not a mark


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
        self._failed = False  # until the next epoch
        self._warned = False
        self._id = os.urandom(8).hex()  # the same in all runs that resume each other
        self._files: List[str] = []  # names, also those of earlier runs
        self._path = ""  # of the open file
        self._size = 0  # of it, in bytes, after the last flush
        self._loaded: Optional[Dict[str, Any]] = None  # until the directory is as it says
        self._writer: Any = None
        self._waiting = 0

    def _setup_graph(self) -> None:
        self._logdir = self._logdir or logger.get_logger_dir() or ""
        if not self._logdir:
            logger.warning("No events are written: there is no log directory to put them in.")

    def _before_train(self) -> None:
        step, config = self.global_step, self.trainer.config
        self._attempt(self._restore)
        if not step and config is not None and config.resume == "auto":
            self._attempt(self._take_out_all)
        # There may be a file of this run: callbacks before this one may have put something.
        if self._files in ([], [os.path.basename(self._path)]):
            graph = self.graph.as_graph_def().SerializeToString()
            self._write(tf.Event(step=step, graph_def=graph))
            if step:
                # Tells TensorBoard to forget what an earlier run wrote for the steps to come.
                start = tf.SessionLog(status=tf.SessionLog.START)
                self._write(tf.Event(step=step + 1, session_log=start))
        self._attempt(self._flush)

    def process_summary(self, summary: tf.Summary) -> None:
        self._write(tf.Event(step=self.global_step, summary=summary))

    def process_event(self, evt: tf.Event) -> None:
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
        if not self._logdir:
            return {}
        self._attempt(self._flush)
        return {
            "id": self._id,
            "files": list(self._files),
            "file": os.path.basename(self._path),
            "size": self._size,
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores it, the files in `before_train`."""
        self._loaded = {**state, "files": list(state["files"])}
        self._id = state["id"]

    def _restore(self) -> None:
        """Restores the directory to the time of the state."""
        if self._loaded is None or not self._logdir:
            return
        state, directory = self._loaded, self._logdir
        os.makedirs(directory, exist_ok=True)
        dropped = drop_others(directory, state["files"], self._id)
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
        if os.path.isdir(self._logdir):
            drop_others(self._logdir, self._files)

    def _write(self, event: tf.Event) -> None:
        if self._logdir:
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
        message = f"Cannot write events to {self._logdir}, they are lost"
        if not self._failed and survive(action, message, quiet=self._warned):
            self._failed = self._warned = True
            path, self._path = self._path, ""
            with suppress(*ERRORS):  # the same failure again, which has been reported
                self._close()
            with suppress(OSError):  # readers stop at half a record; the disk may not let it
                os.truncate(path, self._size)


TFSummaryWriter = TFEventWriter  # the name of 2017


def new_file(directory: str) -> str:
    """Returns a path that does not exist yet and is last in the order of names.

    The time in the name is later than that of any other event file of the directory, wherever the
    clock of the machine has jumped to: readers take the files in the order of their names.
    """
    begin, end = len(_PREFIX), len(_PREFIX) + _STAMP_DIGITS
    stamps = [name[begin:end] for name in event_files(directory)]
    taken = [int(stamp) for stamp in stamps if len(stamp) == _STAMP_DIGITS and stamp.isdigit()]
    stamp = max([int(time.time())] + [each + 1 for each in taken])
    return os.path.join(directory, f"{_PREFIX}{stamp:010d}.{socket.gethostname()}")


def mark_of(writer: str) -> tf.Event:
    """Returns the second record of a file, which names its writer. Readers skip it."""
    return tf.Event(session_log=tf.SessionLog(msg=_MARK + writer))


def marked_files(directory: str, writer: str = "") -> List[str]:
    """Returns the names of the files that a writer began, or any writer of ours, in order."""
    marks = {name: _mark_in(os.path.join(directory, name)) for name in event_files(directory)}
    if writer:
        return [name for name, mark in marks.items() if mark == _MARK + writer]
    return [name for name, mark in marks.items() if mark.startswith(_MARK)]


def drop_others(directory: str, kept: List[str], writer: str = "") -> List[str]:
    """Renames `marked_files` that are not kept to `dropped-events.MMDD-HHMMSS`; returns those."""
    dropped = []
    for name in marked_files(directory, writer):
        if name not in kept:
            dropped.append(backup_name(os.path.join(directory, _DROPPED)))
            os.rename(os.path.join(directory, name), dropped[-1])
    return dropped


def cut_file(path: str, size: int) -> Optional[str]:
    """Cuts an event file after its first `size` bytes.

    The rest is first copied to `dropped-events.MMDD-HHMMSS`, which is an event file too, and whose
    path is returned; None if nothing was cut, as always after an `OSError`. A file with fewer bytes
    is cut after its last complete record.
    """
    length = os.path.getsize(path)
    with open(path, "rb") as file:
        if length < size:
            size = sum(_record_sizes(file, length))
        if length == size:
            return None
        first_size = next(_record_sizes(file, size), 0)
        file.seek(0)
        first = file.read(first_size)  # names the format
        file.seek(size)
        rest = file.read()
    target = backup_name(os.path.join(os.path.dirname(path), _DROPPED))
    write_atomic(target, first + rest)
    os.truncate(path, size)
    fsync_path(path)
    return target


def event_files(directory: str) -> List[str]:
    """Returns the names of the event files of a directory, in order."""
    names = (name for name in os.listdir(directory) if name.startswith(_PREFIX))
    return sorted(name for name in names if os.path.isfile(os.path.join(directory, name)))


def _mark_in(path: str) -> str:
    with open(path, "rb") as file:
        sizes = list(islice(_record_sizes(file, os.path.getsize(path)), 2))
        if len(sizes) < 2 or sizes[1] > _MARK_BYTES:
            return ""
        file.seek(sizes[0] + _HEADER.size)
        data = file.read(sizes[1] - _HEADER.size - _FOOTER_BYTES)
    return str(tf.Event.FromString(data).session_log.msg)


def _record_sizes(file: BinaryIO, limit: int) -> Iterator[int]:
    """Yields the sizes of the leading records that end before a limit."""
    position = 0
    while True:
        file.seek(position)
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return
        size = _HEADER.size + _HEADER.unpack(header)[0] + _FOOTER_BYTES
        if position + size > limit:
            return
        yield size
        position += size
