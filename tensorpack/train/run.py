"""The life of a run, top to bottom: its setup, its loop of epochs and steps, and its end."""

import sys
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any, Callable, Deque, List, Optional, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlowTerminated
from tensorpack.input_source import InputSource
from tensorpack.predict.concurrency import started
from tensorpack.tfutils.callback import StopTraining, TrainerContract
from tensorpack.tfutils.common import get_global_step_value
from tensorpack.tfutils.queues import QueueControl, QueueDrain
from tensorpack.utils import humanize_time_delta, logger
from tensorpack.utils.stopping import Finished, StopRequested, StopToken
from tensorpack.utils.workers.worker_errors import is_end_of_group

from .ending import (
    QUEUE_ERRORS,
    Ending,
    TrainingInterrupted,
    judge,
    log_ending,
    log_late_failures,
)
from .resume import Position, RunState
from .signals import UNBLOCK_SECONDS, SignalGuard, is_in_tensorflow

__all__ = ["ENDLESS", "TrainLoop"]

ENDLESS = 99999  # epochs: the default, of which the last is not waited for
_HEAR_SECONDS = 1.0  # from what a request has caused to the request
_REST_SECONDS = 1.0  # for a request that a predictor computes
_LATEST = 20  # epochs whose time is averaged, so that one with an evaluation is not taken for all


class TrainLoop(TrainerContract):
    """Runs the setup and the loop of a trainer and, whatever happens in them, the end.

    Attributes:
      epoch_num: the running epoch; `starting_epoch - 1` before the first.
      local_step: index of the running step in its epoch, from 0; -1 before the first.
      global_step: how many steps have finished or are running, those of earlier runs included.
      steps_per_epoch, starting_epoch, max_epoch: the plan of the run.
      steps_done: how many steps of the running epoch have finished.
      steps_taken: how many steps have finished in all.
      begun: whether the epochs have begun, so that the state of the run can be saved.
      stop_grace: seconds that the run has to end in order after a signal.
      signal_token: the `StopToken` at which a signal asks for the end: `stop_token`, except in a
        trainer of several processes that end together.
    """

    stop_grace = 20.0
    epoch_num = 0
    local_step = -1
    global_step = 0
    steps_per_epoch = 0
    starting_epoch = 1
    max_epoch = 0
    steps_done = 0
    steps_taken = 0
    begun = False
    graph: Any
    _callbacks: Any = None  # the group of all
    _state: RunState

    def __init__(self) -> None:
        self.stop_token = self.signal_token = StopToken()
        self._guard: Any = None  # a SignalGuard, once the run has begun
        self._inputs: List[InputSource] = []  # released at the end, also if their setup fails
        self._queues: Sequence[QueueControl] = []  # those of the graph of `sess`
        self._end_wait: Optional[Callable[[], None]] = None
        self._unblocked = self._saving_at_end = False
        self._seen: Any = None  # the frame of the main thread at the last attempt to unblock it

    @property
    def loop(self) -> "TrainLoop":
        """The trainer itself, for scripts that take its counters from `trainer.loop`."""
        return self

    @property
    def in_step(self) -> bool:
        """Whether a step has begun and not finished."""
        return self.global_step != self.steps_taken

    def setup(self) -> None:
        """Builds the graph, sets the callbacks up, creates and initialises the session."""

    def run_step(self) -> None:
        """Runs one iteration."""

    def _run(self, is_set_up: bool = False) -> None:
        """Runs the phases and, whatever happens in them, the end; raises how the run ended."""
        if self._guard is not None:
            raise RuntimeError("A trainer runs once: to train again, make one in a new graph.")
        # See `interruptible`.
        patience = self.stop_grace / 2 if self.config.deterministic else UNBLOCK_SECONDS
        self._guard = SignalGuard(
            self.stop_token, self._unblock, self.signal_token, self.stop_grace, patience
        )
        error: Optional[BaseException] = None
        with self._guard:
            try:
                self.record.begin()
                if not is_set_up:
                    self._guard.interruptible(self.setup, at_once=True)
                    self.check_stop()
                self._loop()
            except BaseException as caught:  # the end decides what it means
                error = caught
            ending = self._end(error)
            self.record.end(ending)
        log_ending(self, ending)
        self.record.run_on_complete()
        if ending.raises is not None:
            raise ending.raises

    def _loop(self) -> None:
        """Restores the state that the run resumes, and runs the epochs."""
        config, state, callbacks = self.config, self._state, self._callbacks
        with self.graph.as_default(), self.sess.as_default():
            state.load(callbacks, config.starting_epoch)
            self.steps_per_epoch, self.max_epoch = config.steps_per_epoch, config.max_epoch
            self.starting_epoch = state.first_epoch
            self.global_step = self.steps_taken = get_global_step_value()
            self._enter_epoch(self.starting_epoch - 1, 0)
            if self.starting_epoch > self.max_epoch:
                logger.info(
                    f"The run is over: it has its {config.max_epoch} epochs. For a new one, give "
                    'another log directory, delete this one, or use resume="never". To train '
                    "longer, give a greater max_epoch."
                )
            callbacks.before_train()
            state.load_random()
            self.record.enter_loop()
            self._run_epochs(state.position)

    def _enter_epoch(self, epoch_num: int, steps_done: int) -> None:
        """Enters an epoch, of which an earlier run may have done some steps."""
        self.epoch_num, self.local_step, self.steps_done = epoch_num, steps_done - 1, steps_done

    def _run_epochs(self, position: Optional[Position]) -> None:
        """Runs the epochs of the plan, from where an earlier run was saved."""
        callbacks, self.begun = self._callbacks, True
        if position is not None and position.epoch_is_over:
            self._enter_epoch(position.epoch, position.steps_done)
            callbacks.resume_hook("trigger_epoch", position.turns)
        latest: Deque[float] = deque(maxlen=_LATEST)  # seconds of epochs, with their callbacks
        for epoch in range(self.starting_epoch, self.max_epoch + 1):
            continues = position is not None and position.epoch == epoch
            entered = position if continues else Position(epoch, 0, None, [])
            if not entered.steps_done:  # an epoch that has begun is continued to its end
                callbacks.check_over()
            logger.info(f"Start Epoch {epoch} ...{self._time_left(epoch, latest)}")
            start = time.monotonic()
            if continues:
                logger.info(f"{entered.steps_done} steps of this epoch were done before.")
            self._enter_epoch(epoch, entered.steps_done)
            callbacks.before_epoch()
            if entered.hook == "trigger_step":
                callbacks.resume_hook("trigger_step", entered.turns)
            self._run_steps(callbacks.trigger_step)
            if entered.hook == "after_epoch":
                callbacks.resume_hook("after_epoch", entered.turns)
            else:
                callbacks.after_epoch()
            took = time.monotonic() - start
            logger.info(
                f"Epoch {epoch} (global_step {self.global_step}) finished, time:{took:.2f} sec."
            )
            callbacks.trigger_epoch()
            if not entered.steps_done:  # a part of an epoch says little
                latest.append(time.monotonic() - start)
        logger.info("Training has finished!")

    def _time_left(self, epoch: int, latest: "Deque[float]") -> str:
        """Returns a sentence on how long the remaining epochs will take, or an empty text."""
        if not latest or self.max_epoch >= ENDLESS:
            return ""
        left = self.max_epoch + 1 - epoch
        seconds = left * sum(latest) / len(latest)
        return f" Left: {left} of {self.max_epoch} epochs, about {humanize_time_delta(seconds)}."

    def _run_steps(self, trigger_step: Callable[[], None]) -> None:
        run_step, should_stop = self.run_step, self.hooked_sess.should_stop
        while self.steps_done < self.steps_per_epoch:
            self.local_step += 1
            self.global_step += 1
            run_step()
            self.steps_done += 1
            self.steps_taken = self.global_step
            if should_stop():
                raise StopTraining(f"A hook asked for the end at global_step={self.global_step}.")
            trigger_step()
            self._end_step()

    def _end_step(self) -> None:
        """Ends each step, after its callbacks; raises StopRequested if the run was asked to end."""
        self.stop_token.raise_if_requested()

    def check_stop(self) -> None:
        """As in the base class; while the end of a run is saved, only a second signal counts."""
        if not self._saving_at_end or self._guard.skip_optional:
            self.stop_token.raise_if_requested()

    def interruptible(self, function: Callable[[], Any], end_wait: Callable[[], None]) -> Any:
        """See `TrainerContract`."""
        self._end_wait = end_wait  # before the look at `_unblocked`, which `_unblock` sets first
        try:
            if self._unblocked:
                raise StopRequested(self.stop_token.reason)
            # In a deterministic run nothing is saved without the data that the step has asked for.
            is_whole = self.deterministic and self.begun
            return function() if is_whole else self._guard.interruptible(function)
        except Exception as error:
            ended = is_end_of_group(error, self.stop_token)
            if not self.stop_token.requested:
                raise
            if not (ended or isinstance(error, DataFlowTerminated)):
                logger.warning(f"While the run was ending, the data failed: {error!r}")
            raise StopRequested(self.stop_token.reason) from error
        finally:
            self._end_wait = None

    def _unblock(self) -> None:
        """Ends the wait of a step, or of a callback, for data. May be called on any thread.

        Queues are left alone while the main thread does not wait in TensorFlow. A full one is not
        closed, for TensorFlow logs an enqueue that is cancelled; room in it ends its wait.
        """
        self._unblocked = True
        end_wait = self._end_wait
        if end_wait is not None:
            end_wait()
        for source in self._inputs:
            source.unblock()
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        waits = frame is self._seen and is_in_tensorflow(frame)
        self._seen = frame
        for queue in self._queues if waits else []:
            with suppress(RuntimeError, tf.errors.OpError):  # the session is being closed
                if not queue.make_room(self.sess):
                    queue.close(self.sess)

    def _end(self, error: Optional[BaseException]) -> Ending:
        """Ends the run: whatever goes wrong in one part of this, the others follow."""
        self._guard.in_loop = False
        by_hook = error is not None and getattr(self.hooked_sess, "hook_error", None) is error
        in_step = self.in_step and not by_hook
        token, was_signalled = self.stop_token, bool(self._guard.signum and not self.begun)
        has_reason = isinstance(error, StopRequested) or was_signalled
        if has_reason or (isinstance(error, QUEUE_ERRORS) and in_step):
            token.wait(_HEAR_SECONDS)  # what has caused it may be about to say why
        if isinstance(error, Exception) and was_signalled and token.requested:
            logger.warning(f"The setup was interrupted: {error!r}")
            error = StopRequested(token.reason)
        verdict: Optional[BaseException] = None
        try:
            verdict = judge(error, self, in_step, self._closed_queues)
            if isinstance(verdict, TrainingInterrupted):
                self._attempt_save()
            if isinstance(error, StopTraining):
                self.global_step = self.steps_taken  # a step that it ends is not finished
        except BaseException as unexpected:
            verdict = verdict or unexpected
        late = self._teardown()
        log_late_failures(token)
        return Ending.of(error, verdict or late)

    def _closed_queues(self) -> List[str]:
        try:
            closed = [queue for queue in self._queues if not queue.ended]
            return [f"Queue {queue.op.name!r}" for queue in closed if queue.is_closed(self.sess)]
        except RuntimeError:  # the session is closed, too
            return []

    def _attempt_save(self) -> None:
        try:
            self._save_at_end()
        # The run ends all the same, and what was saved before stays.
        except (RuntimeError, OSError, StopRequested) as error:
            logger.error(f"The run was not saved where it ends: {error}")
        except BaseException:
            logger.exception("The run was not saved where it ends.")

    def _save_at_end(self) -> None:
        """Saves the state in which a signal ends the run, unless a second signal skips that."""
        if self.state_saver is None or not self.begun or self._guard.skip_optional:
            return
        with self.graph.as_default(), self.sess.as_default():
            if get_global_step_value() != self.steps_taken:
                raise RuntimeError("a step was cut off in the middle")
            self._saving_at_end = True
            self.state_saver.save_interrupted()

    def _teardown(self) -> Optional[BaseException]:
        """Stops, joins and closes everything; returns the first error on the way."""
        errors: List[BaseException] = []
        self.stop_token.request(Finished())
        sess, closing = self.sess, self.hooked_sess or self.sess
        predictors = [] if sess is None else started.get(sess.graph)
        for predictor in predictors:
            predictor._end_training()
        try:
            if sess is not None:
                with sess.graph.as_default(), sess.as_default(), QueueDrain(self._queues, sess):
                    self._callbacks.after_train()
        except BaseException as error:
            errors.append(error)
        errors += self._release_inputs()
        for predictor in predictors:
            predictor._close(_REST_SECONDS)
        try:
            if closing is not None:
                closing.close()
        except BaseException as error:
            errors.append(error)
        for predictor in predictors:  # the session has cancelled what was under way
            predictor._close(_REST_SECONDS)
        return errors[0] if errors else None

    def _release_inputs(self) -> List[BaseException]:
        """Releases the input sources; logs all errors and returns them."""
        errors: List[BaseException] = []
        while self._inputs:
            source = self._inputs.pop()
            try:
                source.release()
            except BaseException as error:  # the others have processes, too
                logger.error(f"{type(source).__name__} could not be released: {error!r}")
                errors.append(error)
        return errors
