"""What trainers of several processes have in common: they start, resume, save and end together."""

import itertools
import signal
import threading
import time
from contextlib import contextmanager
from typing import Any, Iterator, List, Optional, Sequence

import numpy as np

from tensorpack.callbacks.base import Callback
from tensorpack.callbacks.monitor import MonitorBase
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.callback import StopTraining
from tensorpack.tfutils.dependency import dependency_of_fetches
from tensorpack.train.multi_tower import MultiTowerTrainer
from tensorpack.train.resume import find_state_saver
from tensorpack.utils import logger
from tensorpack.utils._tracebacks import add_note
from tensorpack.utils.checks import as_positive
from tensorpack.utils.cluster import Cluster
from tensorpack.utils.stopping import (
    Finished,
    Interrupted,
    StopReason,
    StopRequested,
    StopToken,
)

from .resume import agree_on_state
from .server import Gathering, make_server, wait_for_processes

_LEFT = 100.0  # the flag of a worker that ends its training; that of a signal is its number
_KEYS_OF_A_RUN = 1000000
_runs = itertools.count()  # of this process, whose server keeps what earlier ones have left there


class GroupTrainer(MultiTowerTrainer):
    """A worker of a group, whose steps wait for each other.

    With each step travels a flag of each worker, 0 to go on. A signal, or the end of the training,
    at one of them sets its flag, so that all end after the same step. A worker whose group does not
    come to that step in half of `stop_grace` ends alone. One that waits for the others for longer
    than `timeout` ends its process.

    A subclass calls `_form_group` in its constructor, unless its process is alone.
    """

    cluster: Optional[Cluster] = None
    _has_group = False

    def _form_group(self, cluster: Cluster, timeout: float) -> None:
        self._has_group, self.cluster, self._worker = True, cluster, cluster.index
        self.is_chief = cluster.is_chief
        self._timeout = as_positive(self, "timeout", timeout)
        self._gathering: Optional[Gathering] = None
        self._waits_for, self._set_flag, self._flagged = "", None, False  # type: str, Any, bool
        self._over, self._threads = threading.Event(), []  # type: Any, List[threading.Thread]
        self._first_key = next(_runs) * _KEYS_OF_A_RUN + 1
        self.signal_token = StopToken()
        self.signal_token.on_request(self._on_signal)

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

    def _join(self) -> None:
        """Starts the server of this process, and waits for those of the others."""
        if self._gathering is None:
            server = make_server(self.cluster, self._require_config().session_config)
            self._meet_at(server.target)

    def _meet_at(self, target: str) -> None:
        """Waits for the others; `target` is of sessions on the server of this process."""
        self._gathering = Gathering(
            target, self.cluster, self._first_key, self._timeout, self.check_stop
        )
        wait_for_processes(self.cluster, self._timeout, self.check_stop)

    def _gather(self, values: Sequence[float]) -> np.ndarray:
        return self._gathering.gather(values)

    def _compare(self, **values: float) -> None:
        """Waits for all workers; raises ValueError if they do not do the same."""
        table = self._gather(list(values.values()))
        for name, column in zip(values, table.T):
            if (column != column[0]).any():
                raise ValueError(
                    f"The workers differ in {name}: {column.astype(int).tolist()}. All run the "
                    "same program with the same options, such as TrainConfig(steps_per_epoch=...)."
                )

    def _make_flag(self) -> tf.Tensor:
        """Returns float32 `[workers]`: the flag of this worker in its place, and zeros."""
        with tf.device("/device:CPU:0"):
            flag = tf.get_variable(
                "group_flag",
                initializer=0.0,
                trainable=False,
                collections=[tf.GraphKeys.LOCAL_VARIABLES],
                use_resource=True,
            )
            self._new_flag = tf.placeholder(tf.float32, [])
            self._set_flag = flag.assign(self._new_flag, read_value=False)
            return tf.one_hot(self._worker, self.cluster.num_workers) * flag.read_value()

    def _run(self, is_set_up: bool = False) -> None:
        if not self._has_group:
            super()._run(is_set_up)
            return
        self._start(self._watch)
        try:
            super()._run(is_set_up)
        finally:
            self._over.set()
            for each in self._threads:
                each.join()

    def _start(self, function: Any, *args: Any) -> None:
        thread = threading.Thread(target=function, args=args, name="Group", daemon=True)
        thread.start()
        self._threads.append(thread)

    @contextmanager
    def _waiting(self, what: str) -> Iterator[None]:
        """A block that waits for others, which `_watch` limits."""
        self._waits_for = what
        try:
            yield
        finally:
            self._waits_for = ""

    def _watch(self) -> None:
        """Ends the process if it waits for others for too long: nothing else ends such a wait."""
        seen, since = None, 0.0
        while not self._over.wait(min(1.0, self._timeout / 4)):
            step = f"the end of step {self.global_step}" if self.loop.in_step else ""
            now = self._waits_for or step, self.stop_token.requested
            if now != seen:
                seen, since = now, time.monotonic()
            limit = self.stop_grace / 4 if self.stop_token.requested else self._timeout
            if now[0] and time.monotonic() - since > limit and self._guard is not None:
                self._guard.end_process(
                    f"it has waited {limit:g} s for {now[0]}. Another process of the group is "
                    "stopped, cannot be reached, or is slower than timeout allows",
                    code=None if self.signal_token.requested else 1,
                )

    def _loop(self) -> None:
        try:
            super()._loop()
        except (StopTraining, SystemExit) as error:
            if self._has_group and not getattr(error, "code", None):
                self._leave()
            raise
        except tf.errors.OpError as error:
            if self._has_group and self.signal_token.requested:
                raise StopRequested(self.signal_token.reason) from error
            if self._has_group:
                add_note(error, "In a group, the log of the process that ended first tells why.")
            raise

    def _leave(self) -> None:
        """Takes part in one more step of the others, which ends their training."""
        if self._set_flag is not None and not self.stop_token.requested:
            with self._waiting("the last step"):
                self.sess.run(self._set_flag, {self._new_flag: _LEFT})
                self.sess.run(self.train_op)

    def _end_step(self) -> None:
        super()._end_step()
        reason = self.signal_token.reason
        if isinstance(reason, Interrupted) and self._has_group and not self._flagged:
            self._flagged = True
            self.sess.run(self._set_flag, {self._new_flag: reason.signum})

    def _agree(self, flags: np.ndarray) -> None:
        """Ends the run after this step, for the flags of all workers that are not all 0."""
        who = ", ".join(f"worker {i} at {self.cluster.workers[i]}" for i in np.flatnonzero(flags))
        signals = flags[flags < _LEFT]
        if signals.any():
            reason: StopReason = Interrupted(int(signals.max()))
            logger.info(f"{signal.Signals(reason.signum).name} at {who} ends all workers.")
        else:
            reason = Finished()
            logger.info(f"{who} has ended its training, so all workers do.")
        self.stop_token.request(reason)

    def _on_signal(self) -> None:
        if not self.loop.begun:
            self._stop_alone()
            return
        logger.info("Asked to end: all workers end after the same step.")
        self._start(lambda: self._over.wait(self.stop_grace / 2) or self._stop_alone())

    def _stop_alone(self) -> None:
        reason = self.signal_token.reason
        if reason is not None:
            self.stop_token.request(reason)


class StopVote(Callback):
    """Fetches the flags of all workers with each step, and tells the trainer if one is not 0.

    Args:
      flags: float32 `[workers]`.
      waits: what waits for the other workers, so that no other run may fetch it.
    """

    _chief_only = False

    def __init__(self, flags: tf.Tensor, waits: Sequence[tf.Tensor] = ()) -> None:
        self._request, self._waits = tf.train.SessionRunArgs(flags), waits

    def run_along(self, sess: tf.Session, fetches: Any) -> List[tf.Operation]:
        if not dependency_of_fetches(fetches, self.trainer.train_op):
            for each in self._waits:
                if dependency_of_fetches(fetches, each):
                    raise RuntimeError(
                        f"{each.name} is summed over the workers inside the training step and "
                        "cannot be fetched outside it. Fetch it along with the step, as "
                        "MergeAllSummaries(run_alone=False) does, or use an inference tower."
                    )
        return []

    def _before_run(self, ctx: tf.train.SessionRunContext) -> Any:
        return self._request if ctx.original_args.fetches is self.trainer.train_op else None

    def _after_run(
        self, ctx: tf.train.SessionRunContext, run_values: tf.train.SessionRunValues
    ) -> None:
        if np.any(run_values.results):
            self.trainer._agree(run_values.results)
