"""Hears signals at once, even while the main thread is in C code, and calls a function for each.

Python runs signal handlers only between two bytecodes of the main thread, so a handler never runs
while a `Session.run` blocks. The C part of the interpreter, however, writes a byte into the wake-up
descriptor as soon as the signal comes. A thread that reads the other end of it can act. The
installed handlers do nothing themselves, unless a listener is given something for the main thread.
"""

import multiprocessing.util
import os
import select
import signal
import socket
import threading
from contextlib import contextmanager, suppress
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

_POKE = 0  # no signal has this number


@contextmanager
def reraise_interrupt() -> Iterator[None]:
    """Raises KeyboardInterrupt at the end of the block if the block has swallowed one.

    For imports of large libraries, which try optional parts and catch whatever these raise. A
    program that handles SIGINT itself, or another thread than the main one, goes its own way.
    """
    heard: List[int] = []

    def interrupt(signum: int, frame: Any) -> None:
        heard.append(signum)
        raise KeyboardInterrupt

    default = signal.default_int_handler
    is_main = threading.current_thread() is threading.main_thread()
    replaced = is_main and signal.getsignal(signal.SIGINT) is default
    if replaced:
        signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        if replaced:
            signal.signal(signal.SIGINT, default)
    if heard:
        raise KeyboardInterrupt


class SignalListener:
    """A context within which `on_signal(signum)` runs on a thread of its own for each signal.

    Handlers and the wake-up descriptor are put back at the end; bytes meant for a descriptor that
    was there before (a notebook's event loop has one) are passed on to it. Entered outside the main
    thread, where Python allows no handlers, it hears no signals but its timer and `poke` still
    work.

    Args:
      on_signal: called with the signal's number, on the listener's thread.
      on_wake: called on the same thread after each signal or `poke`, and again each time the number
        of seconds that it returned is over; None means that there is nothing to wait for.
      signums: the signals to hear.
      on_main_thread: called as the Python handler, with the signal's number and the frame that it
        interrupts. It may raise, but must take no lock that the main thread may hold.
    """

    def __init__(
        self,
        on_signal: Callable[[int], None],
        on_wake: Callable[[], Optional[float]] = lambda: None,
        signums: Sequence[int] = (signal.SIGINT, signal.SIGTERM),
        on_main_thread: Optional[Callable[[int, Any], None]] = None,
    ) -> None:
        self._on_signal = on_signal
        self._on_wake = on_wake
        self._signums = tuple(signums)
        # Without one, nothing takes the place of the default action: the thread does the work.
        self._on_main_thread = on_main_thread or (lambda signum, frame: None)
        self._old_handlers: Dict[int, Any] = {}
        self._old_fd = -1

    def __enter__(self) -> "SignalListener":
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._closing = False
        self._thread = threading.Thread(target=self._listen, name="SignalListener", daemon=True)
        self._thread.start()
        if threading.current_thread() is threading.main_thread():
            self._old_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
            for signum in self._signums:
                self._old_handlers[signum] = signal.signal(signum, self._on_main_thread)
            multiprocessing.util.register_after_fork(self, SignalListener._after_fork)
        return self

    @property
    def hears_signals(self) -> bool:
        """Whether it has installed its handlers, which only the main thread may do."""
        return bool(self._old_handlers)

    def _after_fork(self) -> None:
        """In a forked copy: signals are the copy's own again, and no news for the parent."""
        if self._old_handlers:
            signal.set_wakeup_fd(-1)
            self._restore_handlers()

    def __exit__(self, *exc_info: object) -> None:
        if self._old_handlers:
            self._restore_handlers()
            signal.set_wakeup_fd(self._old_fd)
        self._closing = True
        self.poke()
        self._thread.join()
        self._reader.close()
        self._writer.close()

    def _restore_handlers(self) -> None:
        for signum, handler in self._old_handlers.items():
            # None: set by C code that Python cannot put back
            signal.signal(signum, signal.SIG_DFL if handler is None else handler)
        self._old_handlers = {}

    def poke(self) -> None:
        """Makes the listener's thread call `on_wake` now, from any thread or signal handler."""
        with suppress(BlockingIOError):  # full, so the thread is about to wake up anyway
            self._writer.send(bytes([_POKE]))

    def _listen(self) -> None:
        poll, timeout = select.poll(), None  # `select.select` takes no descriptor from 1024 on
        poll.register(self._reader, select.POLLIN)
        while True:
            ready = poll.poll(None if timeout is None else 1000 * timeout)
            for number in self._reader.recv(4096) if ready else b"":
                if number in self._signums:
                    self._on_signal(number)
                if number != _POKE and self._old_fd != -1:
                    with suppress(OSError):  # closed by its owner, or full: the owner's business
                        os.write(self._old_fd, bytes([number]))
            if self._closing:
                return
            timeout = self._on_wake()
