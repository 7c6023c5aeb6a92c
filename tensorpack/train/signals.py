"""How signals end a run: they become a stop request, and a deadline is enforced."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Callable, List, Optional

from tensorpack.utils import logger
from tensorpack.utils._console import open_standard_descriptors
from tensorpack.utils.signals import SignalListener
from tensorpack.utils.stopping import Interrupted, StopToken

# How long a step, or the setup, may take to return after a stop request.
UNBLOCK_SECONDS = 0.5
_SETUP_SECONDS = 0.1
_HEAR_SECONDS = 1.0  # from hearing a signal to the stop request
_SAMPLE_SECONDS = 0.005  # between two looks for a moment to interrupt the main thread
_ANNOUNCE_SECONDS = 0.5  # for the last words of a process that is ended without cleaning up
_AGAIN_SECONDS = 0.1  # between two attempts to unblock a step
_STOPPING = "Stopping when the running step or callback is over."
_LAST_WARNING = "Stopping. One more signal ends the process at once, without cleaning up."
_TENSORFLOW = ("tensorflow", "tensorflow_core", "tensorflow_estimator", "keras")


class TrainingInterrupted(SystemExit, KeyboardInterrupt):
    """A signal ended the training; everything has been stopped, joined and closed.

    If it is not caught, the process exits with code 130 (SIGINT), 143 (SIGTERM) or 129 (SIGHUP) and
    prints nothing. `except KeyboardInterrupt` catches it.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(128 + signum)
        self.signum = signum

    def __str__(self) -> str:
        return f"{signal.Signals(self.signum).name} ended the training in order."


class SignalGuard:
    """Turns signals into a stop request during one run, and ends the process if it does not stop.

    The first signal requests the stop, the second skips optional work. The third, or `grace`
    seconds after the first, kills the child processes and ends the process at once. `unblock` is
    called, again and again, if the main thread does not leave its step in time after a stop request
    of any source.
    SIGHUP counts unless it is ignored, as under `nohup`.

    The thread that hears the signals only counts them and watches the deadline. All that may block
    (logging, the wakers of the stop token, `unblock`) runs on a second thread.

    Args:
      unblock: ends what a step may wait for.
      request: called with the reason that the first signal is; by default that of `token`.
      unblock_seconds: how long a step may take to return before `unblock` is called.

    Attributes:
      skip_optional: whether optional work must be skipped.
    """

    def __init__(
        self,
        token: StopToken,
        unblock: Callable[[], None] = lambda: None,
        request: Optional[Callable[[Interrupted], Any]] = None,
        grace: float = 20.0,
        unblock_seconds: float = UNBLOCK_SECONDS,
        hard_exit: Callable[[int], None] = os._exit,
    ) -> None:
        self.unblock_seconds = unblock_seconds
        self._end_step = unblock
        self._request = token.request if request is None else request
        self._token, self._grace, self._hard_exit = token, grace, hard_exit
        self.skip_optional = self._unblocked = False
        self._signals = 0
        self._signum: Optional[int] = None
        self._requested_at = float("inf")
        self._unblock_after = 0.0
        self._signalled_at = 0.0
        self._interrupt_after: Optional[float] = None
        self._overdue = False
        self._echoes = 0  # signals that the guard sent itself and has not heard yet
        self._listener = SignalListener(
            self._on_signal, self._on_tick, _signals_to_hear(), self._on_main_thread
        )
        self._actions: SimpleQueue[Optional[Callable[[], Any]]] = SimpleQueue()
        self._actor = threading.Thread(target=self._act, name="SignalGuard", daemon=True)

    def __enter__(self) -> "SignalGuard":
        open_standard_descriptors()
        self._actor.start()
        self._listener.__enter__()
        if not self._listener.hears_signals:
            logger.warning(
                "Signals are heard in the main thread only: SIGTERM ends this run without a save."
            )
        self._forget = self._token.on_request(self._listener.poke)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._forget()
        self._actions.put(None)
        self._actor.join()  # the listener still enforces the deadline meanwhile
        self._listener.__exit__(*exc_info)

    def left_loop(self) -> None:
        """Tells that the main thread has left its last step, so that nothing needs unblocking."""
        self._unblocked = True

    def run_setup(self, setup: Callable[[], None]) -> None:
        """Runs the setup so that a signal ends it, although few parts of it check the stop token.

        Raises:
          StopRequested: a stop was requested, whatever the setup made of it.
        """
        try:
            self.interruptible(setup, _SETUP_SECONDS)
        except Exception as error:
            # An error that a signal caused is not a failure. The request may come a little later.
            if self._signum is None or not self._token.wait(_HEAR_SECONDS):
                raise
            logger.warning(f"The setup was interrupted: {error!r}")
        self._token.raise_if_requested()

    def interruptible(self, function: Callable[[], Any], after: float = UNBLOCK_SECONDS) -> Any:
        """Calls a function that need not check the stop token, and returns what it returns.

        If it still runs `after` seconds after a stop request, StopRequested is raised in the main
        thread wherever that is in our own or in the user's Python code, as Ctrl-C does in any
        program. It is never raised while TensorFlow is on the stack above this call, because
        TensorFlow turns it into other errors.

        Raises:
          StopRequested: the function was interrupted.
        """
        self._interrupt_after = after
        if self._token.requested:
            self._listener.poke()
        try:
            return function()
        finally:
            self._interrupt_after = None

    def _on_main_thread(self, signum: int, frame: Any) -> None:
        if self._overdue and self._interrupt_after is not None and _can_raise_in(frame):
            self._interrupt_after = None  # raise once: cleaning up must not be interrupted again
            self._token.raise_if_requested()

    def _on_signal(self, signum: int) -> None:
        if self._echoes:
            self._echoes -= 1  # it is ours, or ours is still to come
            return
        self._signals += 1
        if self._signals == 1:
            self._signalled_at, self._signum = time.monotonic(), signum
            self._actions.put(lambda: self._request(Interrupted(signum)))
        elif self._signals == 2:
            self.skip_optional = True
            self._actions.put(lambda: logger.warning(_LAST_WARNING))
        else:
            self.end_process(f"{signal.Signals(signum).name} came for the third time")

    def _on_tick(self) -> Optional[float]:
        now = time.monotonic()
        waits = [self._tick_grace(now)]
        if self._token.requested:
            self._requested_at = min(self._requested_at, now)
            waits += [self._tick_interrupt(now), self._tick_unblock(now)]
        return min((each for each in waits if each is not None), default=None)

    def _tick_grace(self, now: float) -> Optional[float]:
        if self._signum is None:
            return None
        remaining = self._signalled_at + self._grace - now
        if remaining <= 0:
            self.end_process(f"the run did not end within {self._grace:g} seconds")
        return max(remaining, 0.0)

    def _tick_interrupt(self, now: float) -> Optional[float]:
        """Interrupts what may be interrupted, at a moment when TensorFlow is not on the stack."""
        after = self._interrupt_after
        if after is None or not self._listener.hears_signals:
            return None
        remaining = self._requested_at + after - now
        if remaining > 0:
            return remaining
        self._overdue = True
        main = threading.main_thread().ident or 0
        if not self._echoes and _can_raise_in(sys._current_frames().get(main)):
            # Has the main thread run its handler, and ends what it waits for in C.
            self._echoes += 1
            signal.pthread_kill(main, signal.SIGINT)
        return _SAMPLE_SECONDS

    def _tick_unblock(self, now: float) -> Optional[float]:
        if self._unblocked:
            return None
        remaining = max(self._requested_at + self.unblock_seconds, self._unblock_after) - now
        if remaining > 0:
            return remaining
        if self._signum is not None and not self._unblock_after:
            self._actions.put(lambda: logger.info(_STOPPING))
        self._unblock_after = now + _AGAIN_SECONDS
        self._actions.put(self._end_step)
        return _AGAIN_SECONDS

    def _act(self) -> None:
        for action in iter(self._actions.get, None):
            try:
                action()
            except Exception:
                logger.exception("Could not wake up the training.")

    def end_process(self, why: str, code: Optional[int] = None) -> None:
        """Kills the child processes and ends this one. Waits for nothing without a limit.

        Args:
          code: the exit code; by default that of the signal.
        """
        try:
            children = multiprocessing.active_children()
            for child in children:
                child.terminate()
            announcer = threading.Thread(target=_announce, args=[why], daemon=True)
            with suppress(RuntimeError):  # the system has no more threads
                announcer.start()
                announcer.join(_ANNOUNCE_SECONDS)
            for child in children:
                child.kill()
        finally:
            self._hard_exit(128 + (self._signum or signal.SIGTERM) if code is None else code)


def _announce(why: str) -> None:
    logger.error(f"Ending the process without cleaning up: {why}.")
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # closed, or without a reader
            stream.flush()


def _signals_to_hear() -> List[int]:
    hangup = [signal.SIGHUP] * (signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN)
    return [signal.SIGINT, signal.SIGTERM, *hangup]


def is_in_tensorflow(frame: Any) -> bool:
    """Whether a frame is that of a function of TensorFlow."""
    return frame.f_globals.get("__name__", "").partition(".")[0] in _TENSORFLOW


def _can_raise_in(frame: Any) -> bool:
    """Whether the setup is under way in `frame`, and neither TensorFlow nor a finalizer is."""
    while frame is not None:
        if frame.f_code is SignalGuard.interruptible.__code__:
            return True
        if is_in_tensorflow(frame) or frame.f_code.co_name == "__del__":
            return False
        frame = frame.f_back
    return False
