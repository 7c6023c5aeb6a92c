"""What ends a run from outside: signals, their escalation, and the exceptions that tell how the run
ended.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.signals import SignalListener
from tensorpack.utils.stopping import Interrupted, StopRequested, StopToken

__all__ = ["DataEnded", "RunGuard", "TrainingInterrupted"]

# How long a step may take to come back by itself after a stop was requested, before what it may
# wait for is closed.
_UNBLOCK_SECONDS = 0.5
# How long the listener's thread may take to hear a signal that the main thread has seen already.
_HEAR_SECONDS = 1.0


class TrainingInterrupted(SystemExit, KeyboardInterrupt):
    """The training was ended by a signal; everything has been stopped, joined and closed.

    Not caught, it ends the process with code 130 (SIGINT), 143 (SIGTERM) or 129 (SIGHUP) and
    prints nothing. It is caught by `except KeyboardInterrupt`.

    Attributes:
      signum: the signal.
      code: the exit code, 128 + signum.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(128 + signum)
        self.signum = signum
        self.code = 128 + signum


class DataEnded(RuntimeError):
    """The data came to its end before the training did."""


class RunGuard:
    """Watches over one run: turns signals into a stop request, and sees to it that the stop comes
    about.

    First signal: the stop is requested. Second: optional work is to be skipped. Third, or `grace`
    seconds after the first: the child processes are killed and the process ends on the spot. If the
    main thread has not come out of a step soon after a stop was requested (by whomever), `unblock`
    is called, on another thread. SIGHUP counts unless it is ignored, as under `nohup`.

    Args:
      token: the run's stop token.
      grace: seconds that the run has to end in order after a signal.
      hard_exit: called with the exit code when there is no more waiting.

    Attributes:
      unblock_seconds: how long a step may take to come back by itself.
      skip_optional: whether what is not needed is to be left out.
    """

    def __init__(
        self, token: StopToken, grace: float = 20.0, hard_exit: Callable[[int], None] = os._exit
    ) -> None:
        self.unblock: Callable[[], None] = lambda: None
        self.unblock_seconds = _UNBLOCK_SECONDS
        self.skip_optional = False
        self._token = token
        self._grace = grace
        self._hard_exit = hard_exit
        self._left_loop = threading.Event()
        self._unblocked = False
        self._signals = 0
        self._signum: Optional[int] = None
        self._requested_at = float("inf")
        self._signalled_at = 0.0
        self._raising = False
        self._echoes = 0  # signals that we have sent ourselves and not heard yet
        self._listener = SignalListener(
            self._on_signal, self._on_tick, _signals_to_hear(), self._on_main_thread
        )

    def __enter__(self) -> "RunGuard":
        self._listener.__enter__()
        self._forget = self._token.on_request(self._listener.poke)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._forget()
        self._listener.__exit__(*exc_info)

    def left_loop(self) -> None:
        """Tells that the main thread has come out of its last step, so nothing has to be
        unblocked.
        """
        self._left_loop.set()

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Within this block the first signal raises StopRequested out of the main thread's Python
        code, wherever that is, as Ctrl-C does in any program. For the setup, of which no part looks
        at the stop token, and in which there are no threads to be stopped.

        What runs inside a `Session.run` is left alone, since TensorFlow makes a RuntimeError of an
        exception there: look at the stop token after it.
        """
        self._raising = True
        try:
            yield
        except StopRequested:
            self._token.wait(_HEAR_SECONDS)  # so that the reason is there for whoever asks
            raise
        finally:
            self._raising = False

    def _on_main_thread(self, signum: int, frame: Any) -> None:
        if self._raising and not _in_session_run(frame):
            self._raising = False  # once: what cleans up while this unwinds must not be hit again
            raise StopRequested(Interrupted(signum))

    def _on_signal(self, signum: int) -> None:
        if self._echoes:
            self._echoes -= 1  # it is ours, or ours is still to come
            return
        self._signals += 1
        if self._signals == 1:
            self._signum, self._signalled_at = signum, time.monotonic()
            self._token.request(Interrupted(signum))
        elif self._signals == 2:
            self.skip_optional = True
            logger.warning("Stopping. Once more, and the process ends at once without cleaning up.")
        else:
            self._end_process(f"{signal.Signals(signum).name} came for the third time")

    def _on_tick(self) -> Optional[float]:
        if not self._token.requested:
            return None
        now = time.monotonic()
        self._requested_at = min(self._requested_at, now)
        waits = [self._tick_unblock(now), self._tick_grace(now)]
        return min((each for each in waits if each is not None), default=None)

    def _tick_unblock(self, now: float) -> Optional[float]:
        if self._unblocked or self._left_loop.is_set():
            return None
        remaining = self._requested_at + self.unblock_seconds - now
        if remaining > 0:
            return remaining
        self._unblocked = True
        if self._signum is not None:
            logger.info("Stopping when the running step or callback is over.")
            if self._raising:
                self._nudge(self._signum)
        try:
            self.unblock()
        except Exception:  # a session that was closed meanwhile blocks nobody
            logger.exception("Could not wake the training up.")
        return None

    def _nudge(self, signum: int) -> None:
        """Interrupts what the main thread waits for in C: the system may have given the signal to
        another thread, and then Python's handler runs only when that wait is over.
        """
        self._echoes += 1
        signal.pthread_kill(threading.main_thread().ident or 0, signum)

    def _tick_grace(self, now: float) -> Optional[float]:
        if self._signum is None:
            return None
        remaining = self._signalled_at + self._grace - now
        if remaining <= 0:
            self._end_process(f"the run did not end within {self._grace:g} seconds")
        return max(remaining, 0.0)

    def _end_process(self, why: str) -> None:
        logger.error(f"Ending the process without cleaning up: {why}.")
        for child in multiprocessing.active_children():
            child.terminate()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                pass  # nobody reads it any more
        self._hard_exit(128 + (self._signum or signal.SIGTERM))


def _signals_to_hear() -> List[int]:
    signums = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signums.append(signal.SIGHUP)
    return [int(each) for each in signums]


def _in_session_run(frame: Any) -> bool:
    """Whether a `tf.Session` runs something on the stack of `frame`."""
    while frame is not None:
        if frame.f_code is tf.Session.run.__code__:
            return True
        frame = frame.f_back
    return False
