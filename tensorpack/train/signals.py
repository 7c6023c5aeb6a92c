"""How signals end a run: they become a stop request, and a deadline is enforced."""

import multiprocessing
import os
import select
import signal
import socket
import sys
import threading
import time
from contextlib import ExitStack, suppress
from inspect import CO_GENERATOR
from queue import Empty, SimpleQueue
from typing import Any, Callable, Optional

from tensorpack.utils import logger
from tensorpack.utils._console import open_standard_descriptors
from tensorpack.utils.signals import handled
from tensorpack.utils.stopping import Interrupted, StopRequested, StopToken

# How long a step may take to return after a stop request.
UNBLOCK_SECONDS = 0.5
_ANNOUNCE_SECONDS = 0.5  # for the last words of a process that is ended without cleaning up
_AGAIN_SECONDS = 0.1  # between two attempts to unblock a step
_TENSORFLOW = ("tensorflow", "tensorflow_core", "tensorflow_estimator", "keras")
# Where an error is ignored, or leaves a block open.
_CLEANS_UP = ("__del__", "__enter__", "__exit__", "weakref", "_weakrefset")


class SignalGuard:
    """Turns signals into a stop request during one run, and ends the process if it does not stop.

    The first signal requests the stop, the second skips optional work. The third, or `grace`
    seconds after the first, kills the child processes and ends the process at once. `unblock` is
    called, again and again, if the main thread does not leave its step in time after a stop request
    of any source. SIGHUP counts unless it is ignored, as under `nohup`.

    No Python handler runs while the main thread is in C code. So a thread hears the signals by the
    wake-up descriptor; it only counts them and watches the deadline. All that may block (logging,
    the wakers of the tokens, `unblock`) runs on a second thread. The handler interrupts what may be
    interrupted.

    Args:
      unblock: ends what a step may wait for.
      signal_token: the one at which a signal asks for the end; `token` by default.
      unblock_seconds: how long a step may take to return before `unblock` is called.

    Attributes:
      signum: the number of the first signal, 0 before it.
      in_loop: whether the main thread may be in a step, so that it may need unblocking.
      skip_optional: whether optional work must be skipped.
    """

    def __init__(
        self,
        token: StopToken,
        unblock: Callable[[], None] = lambda: None,
        signal_token: Optional[StopToken] = None,
        grace: float = 20.0,
        unblock_seconds: float = UNBLOCK_SECONDS,
    ) -> None:
        self._token, self._signal_token, self._grace = token, signal_token or token, grace
        self._unblock_step, self._unblock_seconds = unblock, unblock_seconds
        self.in_loop, self.skip_optional, self._has_tried = True, False, False
        self._at_once = self._interruptible = False
        self._signals, self.signum, self._deadline = 0, 0, float("inf")
        self._actions: SimpleQueue[Optional[Callable[[], Any]]] = SimpleQueue()
        self._actor = threading.Thread(target=self._act, name="SignalGuard", daemon=True)
        self._listener: Optional[threading.Thread] = None
        self._handlers, self._outer_fd = ExitStack(), -1

    def __enter__(self) -> "SignalGuard":
        open_standard_descriptors()
        self._actor.start()
        self._token.on_request(lambda: self._actions.put(lambda: None))
        if threading.current_thread() is not threading.main_thread():
            logger.warning(
                "Signals are heard in the main thread only: SIGTERM ends this run without a save."
            )
            return self
        hangup = [signal.SIGHUP] * (signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN)
        self._signums = [signal.SIGINT, signal.SIGTERM, *hangup]
        self._reader, self._writer = socket.socketpair()
        self._writer.setblocking(False)
        self._listener = threading.Thread(target=self._listen, name="SignalListener", daemon=True)
        self._listener.start()
        self._outer_fd = signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        self._handlers.enter_context(handled(self._signums, self._interrupt))
        multiprocessing.util.register_after_fork(self, SignalGuard._leave_to_parent)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._actions.put(None)
        self._actor.join()  # the listener still enforces the deadline meanwhile
        if self._listener is not None:
            self._handlers.close()
            signal.set_wakeup_fd(self._outer_fd)
            self._writer.close()
            self._listener.join()
            self._reader.close()

    def _leave_to_parent(self) -> None:
        """In a forked copy: signals are the copy's own again, and no news for the parent."""
        signal.set_wakeup_fd(-1)
        self._handlers.close()

    def interruptible(self, function: Callable[[], Any], at_once: bool = False) -> Any:
        """Calls a function that need not check the stop token, and returns what it returns.

        A signal raises StopRequested in the main thread wherever that is in our own or in the
        user's Python code, as Ctrl-C does in any program. It is never raised while TensorFlow is on
        the stack above this call, because TensorFlow turns it into other errors. Without `at_once`,
        a worker of a group is not interrupted: it comes to the end of its step.
        """
        self._interruptible, self._at_once = True, at_once or self._signal_token is self._token
        try:
            if self.signum:
                self._interrupt(self.signum, sys._getframe())
            return function()
        finally:
            self._interruptible = False
            if self.signum:
                sys.setprofile(None)

    def _interrupt(self, signum: int, frame: Any) -> None:
        """The Python handler, on the main thread."""
        self.signum = self.signum or signum
        if self._interruptible and (self._at_once or self._token.requested):
            if _can_raise_in(frame):
                self._raise()
            sys.setprofile(self._on_return)

    def _on_return(self, frame: Any, event: str, arg: Any) -> None:
        """Interrupts the main thread as soon as it has left TensorFlow."""
        code = frame.f_code
        if event == "return" and code.co_name != "__enter__" and not code.co_flags & CO_GENERATOR:
            if _can_raise_in(frame.f_back):
                self._raise()

    def _raise(self) -> None:
        self._interruptible = False  # raise once: cleaning up must not be interrupted again
        sys.setprofile(None)
        raise StopRequested(Interrupted(self.signum))

    def _listen(self) -> None:
        poll = select.poll()  # `select.select` takes no descriptor from 1024 on
        poll.register(self._reader, select.POLLIN)
        while self._signals < 3:
            left = max(self._deadline - time.monotonic(), 0.0)
            if not poll.poll(1000 * left if self._signals else None):
                return self.end_process(f"the run did not end within {self._grace:g} seconds")
            numbers = self._reader.recv(4096)
            if not numbers:  # the guard is left
                return
            with suppress(OSError):  # there is none, or it is full: the business of its owner
                os.write(self._outer_fd, numbers)
            for number in numbers:
                if number in self._signums:
                    self._count(number)

    def _count(self, signum: int) -> None:
        self._signals += 1
        if self._signals == 1:
            self._deadline, self.signum = time.monotonic() + self._grace, signum
            self._actions.put(lambda: self._signal_token.request(Interrupted(signum)))
        elif self._signals == 2:
            self.skip_optional = True
            said = "Stopping without a save, if none has begun. One more signal ends the process."
            self._actions.put(lambda: logger.warning(said))
        else:
            self.end_process(f"{signal.Signals(signum).name} came for the third time")

    def _act(self) -> None:
        pause: Optional[float] = None
        while True:
            try:
                action, pause = self._actions.get(timeout=pause), self._unblock_seconds
            except Empty:
                action, pause = self._unblock, _AGAIN_SECONDS
            if action is None:
                return
            try:
                action()
            except Exception:
                logger.exception("Could not wake up the training.")
            if not (self.in_loop and self._token.requested):
                pause = None

    def _unblock(self) -> None:
        if self.in_loop:
            if self.signum and not self._has_tried:
                logger.info("Stopping when the running step or callback is over.")
            self._has_tried = True
            self._unblock_step()

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
            os._exit(128 + (self.signum or signal.SIGTERM) if code is None else code)


def _announce(why: str) -> None:
    logger.error(f"Ending the process without cleaning up: {why}.")
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # closed, or without a reader
            stream.flush()


def is_in_tensorflow(frame: Any) -> bool:
    """Whether a frame is that of a function of TensorFlow."""
    return frame.f_globals.get("__name__", "").partition(".")[0] in _TENSORFLOW


def _can_raise_in(frame: Any) -> bool:
    """Whether `interruptible` calls `frame`, and nothing is between that must come to its end."""
    while frame is not None:
        if frame.f_code is SignalGuard.interruptible.__code__:
            return True
        names = frame.f_code.co_name, frame.f_globals.get("__name__")
        if is_in_tensorflow(frame) or any(name in _CLEANS_UP for name in names):
            return False
        frame = frame.f_back
    return False
