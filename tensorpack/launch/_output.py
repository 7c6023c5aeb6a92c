"""Shows what several processes print, line by line, each with the name of its process."""

import os
import select
import threading
import time
from typing import List

STDOUT, STDERR = 1, 2
_READ_BYTES, _LONGEST_LINE = 1 << 16, 1 << 20  # what a pipe holds; what is longer is cut
_POLL_MILLISECONDS, _BAR_SECONDS = 200, 10.0  # a progress bar is shown so often


class Output:
    """Prints the lines of some pipes, with a thread for each, and those of the launcher itself.

    If the reader of the output is gone, it is dropped. One that pauses holds up the processes, but
    not the main thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of both sinks
        self._threads: List[threading.Thread] = []
        self._is_finishing = False
        reader, self._pipe = os.pipe()
        self.add("launch", reader, STDERR)

    def add(self, name: str, pipe: int, sink: int) -> threading.Thread:
        """Starts a thread that reads a pipe to its end, and prints on descriptor `sink`."""
        args = (f"[{name}] ".encode(), pipe, sink)
        self._threads.append(threading.Thread(target=self._read, args=args, daemon=True))
        self._threads[-1].start()
        return self._threads[-1]

    def say(self, text: str) -> None:
        """Prints a line of the launcher on standard error; waits for no reader."""
        os.write(self._pipe, f"{text}\n".encode())

    def finish(self) -> None:
        """From now on, a pipe is at its end once it is empty: a foreign process may hold it."""
        self._is_finishing = True

    def is_open(self) -> bool:
        """Whether something is still to be printed."""
        return any(thread.is_alive() for thread in self._threads)

    def _read(self, prefix: bytes, pipe: int, sink: int) -> None:
        poll = select.poll()
        poll.register(pipe, select.POLLIN)
        rest, next_bar, is_over = b"", 0.0, False
        while not is_over:
            is_over, lines = self._is_finishing, []
            if poll.poll(0 if is_over else _POLL_MILLISECONDS):
                data = os.read(pipe, _READ_BYTES)
                is_over = is_over or not data
                *lines, rest = (rest + data).split(b"\n")
            if b"\r" in rest and time.monotonic() >= next_bar:
                next_bar = time.monotonic() + _BAR_SECONDS
                lines.append(rest)
            rest = b"\r".join(rest.split(b"\r")[-3:])
            if rest and (is_over or len(rest) > _LONGEST_LINE):
                lines.append(rest)
                rest = b""
            # Of a line that carriage returns have overwritten, what a terminal shows, roughly.
            texts = [[t for t in line.split(b"\r") if t.strip()] or [b""] for line in lines]
            self._write(sink, b"".join(prefix + shown[-1] + b"\n" for shown in texts))

    def _write(self, sink: int, data: bytes) -> None:
        with self._lock:
            while data:
                try:
                    data = data[os.write(sink, data) :]
                except BlockingIOError:  # another program has made the terminal so
                    time.sleep(0.01)
                except OSError:  # the reader is gone, or the disk is full
                    return
