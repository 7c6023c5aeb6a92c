"""Shows what several processes print, line by line, each with the name of its process."""

import collections
import errno
import io
import os
import re
import select
import selectors
import sys
import threading
import time
from typing import Callable, Deque, Dict, List, NamedTuple, Optional

from tensorpack.utils._console import ForgivingStream, point_at_devnull

STDOUT, STDERR = 1, 2
_READ_BYTES = 1 << 16
_LONGEST_LINE = 1 << 20  # bytes; what is longer is shown in pieces
_PIECE = select.PIPE_BUF  # a pipe that is ready takes so many bytes without blocking
_BAR_SECONDS = 10.0  # a progress bar is shown so often
_POLL_SECONDS, _LAST_SECONDS = 0.2, 1.0
_TAIL_LINES, _TAIL_BYTES = 200, 1000  # kept of each process, and of each line
_COLOURS = (36, 32, 33, 35, 34)  # without red, which is for errors
_RESET = b"\033[0m"
# Moves of the cursor, which would end up in the line of another process; colours may stay.
_MOVES = re.compile(rb"\033\[[\d;?]*[A-HJKSTfhl]")


class Line(NamedTuple):
    """A line that a process has printed, and when."""

    text: bytes
    time: float


class Output:
    """Reads the pipes of some processes on a thread, and prints their lines with their names.

    A reader of ours that is gone, or a full disk, does not hold up the processes: their output is
    dropped. One that pauses does, as it does in a pipeline.

    Args:
      coloured: whether the names are in colour.
      on_end: called on the thread when the last pipe of a process is at its end.
    """

    def __init__(self, coloured: bool, on_end: Callable[[], object]) -> None:
        self._coloured = coloured
        self._on_end = on_end
        self._selector = selectors.DefaultSelector()
        self._open: Dict[str, int] = {}  # pipes that are not at their end
        self._tails: Dict[str, Deque[Line]] = {}
        self._said: Deque[bytes] = collections.deque()
        self._lock = threading.Lock()  # of the tails
        self._waits_for_pipes = True
        self._waits_for_reader, self._reads_until = True, float("inf")
        self._complained = False
        self._thread = threading.Thread(target=self._run, name="Output", daemon=True)

    def add(self, name: str, pipe: int, sink: int) -> None:
        """Takes over a pipe of the process `name`, to be printed on descriptor `sink`.

        To be called before `start`.
        """
        number = list(self._tails).index(name) if name in self._tails else len(self._tails)
        self._tails.setdefault(name, collections.deque(maxlen=_TAIL_LINES))
        self._open[name] = self._open.get(name, 0) + 1
        prefix = f"[{name}]".encode()
        if self._coloured:
            prefix = b"\033[%dm%s%s" % (_COLOURS[number % len(_COLOURS)], prefix, _RESET)
        os.set_blocking(pipe, False)
        self._selector.register(pipe, selectors.EVENT_READ, _Pipe(name, prefix + b" ", sink))

    def start(self) -> None:
        """Starts the thread, once all pipes are there."""
        self._thread.start()

    def is_open(self, name: str) -> bool:
        """Whether a process, or one that it started, may still print something."""
        return self._open.get(name, 0) > 0

    def tail(self, name: str) -> List[Line]:
        """The last lines of a process."""
        with self._lock:
            return list(self._tails.get(name, ()))

    def say(self, text: str) -> None:
        """Prints lines of the launcher itself on standard error; waits for no reader."""
        self._said.append(_marked(text).encode("utf-8", "backslashreplace"))
        if not self._thread.is_alive():
            self._say_all()

    def abandon_pipes(self) -> None:
        """From now on, a pipe without data is at its end: a foreign process holds it."""
        self._waits_for_pipes = False

    def abandon_reader(self) -> None:
        """From now on, what the reader of the output does not take at once is dropped."""
        self._waits_for_pipes = self._waits_for_reader = False
        self._reads_until = time.monotonic() + _LAST_SECONDS  # also of who never stops writing

    def join(self) -> None:
        """Waits until all lines are printed; `start` must have been called."""
        self._thread.join()
        self._selector.close()
        self._say_all()

    def _say_all(self) -> None:
        while self._said:
            self._write(STDERR, self._said.popleft())

    def _run(self) -> None:
        while self._open:
            ready = self._selector.select(_POLL_SECONDS)
            self._say_all()
            for key, _ in ready:
                self._read(key.fd, key.data)
            if not self._waits_for_pipes and (not ready or time.monotonic() > self._reads_until):
                for key in list(self._selector.get_map().values()):
                    self._end(key.fd, key.data)

    def _read(self, fd: int, pipe: "_Pipe") -> None:
        try:
            data = os.read(fd, _READ_BYTES)
        except BlockingIOError:
            return
        if data:
            self._show(pipe, pipe.feed(data))
        else:
            self._end(fd, pipe)

    def _end(self, fd: int, pipe: "_Pipe") -> None:
        self._show(pipe, pipe.end())
        self._selector.unregister(fd)
        os.close(fd)
        self._open[pipe.name] -= 1
        if not self._open[pipe.name]:
            del self._open[pipe.name]
            self._on_end()

    def _show(self, pipe: "_Pipe", lines: List[bytes]) -> None:
        if not lines:
            return
        now = time.monotonic()
        with self._lock:
            self._tails[pipe.name].extend(Line(line[:_TAIL_BYTES], now) for line in lines)
        reset = _RESET if self._coloured else b""
        ends = [(reset if b"\033" in line else b"") + b"\n" for line in lines]
        self._write(pipe.sink, b"".join(pipe.prefix + a + b for a, b in zip(lines, ends)))

    def _write(self, sink: int, data: bytes) -> None:
        error = self._attempt(sink, data)
        if error is not None and not self._complained and sink != STDERR:
            self._complained = True
            self.say(f"Standard output fails ({error}): lines of the processes are lost.")

    def _attempt(self, sink: int, data: bytes) -> Optional[str]:
        """Writes as long as there is a reader; returns what is wrong."""
        poll = select.poll()
        poll.register(sink, select.POLLOUT)
        view = memoryview(data)
        while view:
            if not poll.poll(1000 * _POLL_SECONDS):
                if not self._waits_for_reader:
                    return "it has no reader"
                continue
            try:
                view = view[os.write(sink, view[:_PIECE]) :]
            except BlockingIOError:
                time.sleep(0.01)
            except OSError as error:
                if error.errno in (errno.EPIPE, errno.EIO):  # the reader, or the terminal, is gone
                    point_at_devnull(io.FileIO(sink, "w", closefd=False))
                    return None
                return error.strerror
        return None


class _Pipe:
    """Cuts what a process prints into lines."""

    def __init__(self, name: str, prefix: bytes, sink: int) -> None:
        self.name = name
        self.prefix = prefix
        self.sink = sink
        self._rest = b""  # a line that is not at its end
        self._bar: Optional[bytes] = None  # what stood in that line before it was overwritten
        self._next_bar = 0.0

    def feed(self, data: bytes) -> List[bytes]:
        """Returns the lines to show after some more bytes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        shown = [self._line(line) for line in lines]
        while len(self._rest) > _LONGEST_LINE:
            shown.append(_clean(self._rest[:_LONGEST_LINE]))
            self._rest = self._rest[_LONGEST_LINE:]
        before, overwritten, rest = self._rest.rpartition(b"\r")
        if overwritten:
            self._bar, self._rest = _last_text(before) or self._bar, rest
        if self._bar is not None and time.monotonic() >= self._next_bar:
            self._next_bar = time.monotonic() + _BAR_SECONDS
            shown.append(self._bar)
            self._bar = None
        return shown

    def end(self) -> List[bytes]:
        """Returns what is left at the end of the pipe."""
        return [self._line(self._rest)] if self._rest or self._bar else []

    def _line(self, line: bytes) -> bytes:
        bar, self._bar = self._bar, None
        return _last_text(line) or bar or b""


def say(text: str) -> None:
    """Prints lines of the launcher on standard error, outside the runs of a group."""
    stream = ForgivingStream(sys.stderr)
    stream.write(_marked(text))
    stream.flush()


def _marked(text: str) -> str:
    return "".join(f"[launch] {line}\n" for line in text.splitlines())


def _last_text(line: bytes) -> bytes:
    """What a terminal shows of a line that carriage returns have overwritten, roughly."""
    texts = [_clean(text) for text in line.split(b"\r")]
    return next((text for text in reversed(texts) if text.strip()), b"")


def _clean(text: bytes) -> bytes:
    return _MOVES.sub(b"", text)
