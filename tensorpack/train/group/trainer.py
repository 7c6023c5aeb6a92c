"""What trainers of several processes have in common: they resume, save and end together."""

import threading
from typing import Any, Callable, List, Sequence

import numpy as np

from tensorpack.callbacks.base import Callback
from tensorpack.callbacks.monitor import MonitorBase
from tensorpack.compat import tfv1 as tf
from tensorpack.train.multi_tower import MultiTowerTrainer
from tensorpack.train.resume import find_state_saver
from tensorpack.utils import logger
from tensorpack.utils.stopping import Failed, Interrupted, StopToken

from .resume import agree_on_state

_JOIN_SECONDS = 2.0


class GroupTrainer(MultiTowerTrainer):
    """A worker of a group. A signal at one of them ends all after the same step; a worker whose
    group does not come to an agreement in half of `stop_grace` ends alone.

    A subclass calls `_form_group` in its constructor, unless its process is alone.
    """

    _has_group = False
    # What a subclass has:
    _join: Callable[[], None]  # waits for the others, unless it was called before
    _gather: Callable[[Sequence[float]], np.ndarray]  # the values of all, [workers, values]
    _vote: Callable[[Interrupted], None]  # asks all to end after a step; on any thread
    _agree: Callable[[Any], None]  # ends the run after this step, for a vote that is not 0
    _release: Callable[[], None]  # ends what this worker waits for in a step
    _leave: Callable[[], None]  # lets go of the others; the run has ended

    def _form_group(self, worker: int) -> None:
        self._has_group, self._worker = True, worker
        self._over = threading.Event()
        self._waiting: List[threading.Thread] = []
        self.signal_token = StopToken()
        self.signal_token.on_request(self._on_signal)

    def _can_agree(self) -> bool:
        """Whether this worker comes to a step in which all can agree on the end."""
        return self.loop.begun

    def setup(self) -> None:
        """As the base class, when the group has agreed on the state to resume from."""
        if self._has_group:
            self._join()
            agree_on_state(self._require_config(), self._state, self._gather)
        super().setup()

    def setup_callbacks(
        self, callbacks: Sequence[Callback], monitors: Sequence[MonitorBase]
    ) -> None:
        """As the base class. The first `ModelSaver` runs on each worker: all save the state of
        their run, and what of the variables is theirs, see `variables_to_save`.
        """
        saver = find_state_saver(callbacks) if self._has_group and not self.is_chief else None
        if saver is not None:
            saver.chief_only = False
        super().setup_callbacks(callbacks, monitors)

    def _run(self, is_set_up: bool = False) -> None:
        try:
            super()._run(is_set_up)
        finally:
            if self._has_group:
                self._end_group()

    def _end_group(self) -> None:
        self._over.set()
        for each in self._waiting:
            each.join(_JOIN_SECONDS)
        self._leave()

    def _on_signal(self) -> None:
        reason = self.signal_token.reason
        if not self._can_agree() or not isinstance(reason, Interrupted):
            self._stop_alone()
            return
        logger.info("Asked to end: all workers end after the same step.")
        self._vote(reason)
        self._after(self.stop_grace / 2, self._stop_alone)

    def _after(self, seconds: float, function: Callable[..., Any], *args: Any) -> None:
        """Calls `function(*args)` on a thread in so many seconds, unless the run has ended then."""

        def wait() -> None:
            if not self._over.wait(seconds):
                function(*args)

        # a daemon: as a last resort it may wait for a process that hangs
        thread = threading.Thread(target=wait, name="GroupTimer", daemon=True)
        thread.start()
        self._waiting.append(thread)

    def _on_lost(self, error: BaseException) -> None:
        """Ends this worker because the group has broken; called on any thread."""
        self.stop_token.request(Failed(error, "the group of processes"))
        self._release()
        self._life.unblock()

    def _stop_alone(self) -> None:
        """Ends this worker because of a signal, also if others do not come to a step in time."""
        reason = self.signal_token.reason
        if reason is not None and not self._over.is_set():
            self.stop_token.request(reason)
            self._release()


class StopVote(Callback):
    """Fetches with each step what the group has voted, and tells the trainer of a vote to end.

    Args:
      vote: 0, or a vector of zeros, where no worker asks for the end.
      check_run: called with the fetches of each other run; raises if it would wait for the others.
    """

    _chief_only = False

    def __init__(self, vote: tf.Tensor, check_run: Callable[[Any], None] = lambda _: None) -> None:
        self._request, self._check_run = tf.train.SessionRunArgs(vote), check_run

    def run_along(self, sess: tf.Session, fetches: Any) -> List[tf.Operation]:
        self._check_run(fetches)
        return []

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        return self._request if ctx.original_args.fetches is self.trainer.train_op else None

    def _after_run(
        self, ctx: tf.train.SessionRunContext, run_values: tf.train.SessionRunValues
    ) -> None:
        if np.any(run_values.results):
            self.trainer._agree(run_values.results)
