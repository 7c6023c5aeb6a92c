"""Signals in a block of code: who hears them, and that what was there before comes back."""

import signal
import threading
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Sequence


@contextmanager
def handled(signums: Sequence[int], handler: Callable[[int, Any], Any]) -> Iterator[None]:
    """Handles these signals in the block, which is on the main thread.

    A handler runs between two bytecodes, so it must take no lock that the main thread may hold.
    """
    outer = [(signum, signal.signal(signum, handler)) for signum in signums]
    try:
        yield
    finally:
        for signum, before in outer:  # None: set by C code that Python cannot put back
            signal.signal(signum, signal.SIG_DFL if before is None else before)


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

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    with handled([signal.SIGINT], interrupt):
        yield
    if heard:
        raise KeyboardInterrupt
