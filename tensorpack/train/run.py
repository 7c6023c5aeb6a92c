"""The life of a run, top to bottom: its phases, its loop of epochs and steps, and its end."""

import sys
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Any, Callable, Deque, List, Optional, Sequence

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlowTerminated
from tensorpack.input_source import InputSource
from tensorpack.predict import MultiThreadAsyncPredictor
from tensorpack.tfutils.callback import StopTraining
from tensorpack.tfutils.common import get_global_step_value
from tensorpack.tfutils.queues import QueueControl, QueueDrain
from tensorpack.utils import humanize_time_delta, logger
from tensorpack.utils.stopping import Finished, StopRequested, StopToken
from tensorpack.utils.workers.worker_errors import is_end_of_group

from .ending import QUEUE_ERRORS, Ending, judge, log_ending, log_late_failures
from .signals import HEAR_SECONDS, SignalGuard, TrainingInterrupted, is_in_tensorflow
from .state import Position

__all__ = ["ENDLESS", "Lifecycle", "TrainLoop"]

ENDLESS = 99999  # epochs: the default, of which the last is not waited for
_REST_SECONDS = 1.0  # for a request that a predictor computes
_LATEST = 20  # epochs whose time is averaged, so that one with an evaluation is not taken for all


class Lifecycle:
    """Runs the phases of a trainer and, whatever happens in them, ends what they have opened.

    Args:
      token: its reason decides how the run has ended.

    Attributes:
      loop: the loop and its counters.
      inputs: the input sources that are released at the end, also if their setup fails.
      queues: those of the graph of `sess`, once that is created.
      result: that of the `Ending` of the run, "" before.
    """

    def __init__(self, token: StopToken) -> None:
        self.loop = TrainLoop()
        self.inputs: List[InputSource] = []
        self.result = ""
        self._token = token
        self.sess: Any = None
        self.queues: Sequence[QueueControl] = []
        self._end_wait: Optional[Callable[[], None]] = None
        self._unblocked = False
        self._seen: Any = None  # the frame of the main thread at the last attempt to unblock it

    def run(self, trainer: Any, guard: SignalGuard, *phases: Callable[[], None]) -> None:
        """Runs the phases and the end; raises how the run ended."""
        error: Optional[BaseException] = None
        with guard:
            try:
                for phase in (trainer.record.begin, *phases):
                    phase()
            except BaseException as caught:  # the end decides what it means
                error = caught
            finally:
                guard.left_loop()
                ending = self._end(trainer, error)
                trainer.record.end(ending)
        log_ending(trainer, ending)
        trainer.record.run_on_complete()
        if ending.raises is not None:
            raise ending.raises

    def run_loop(self, trainer: Any) -> None:
        """The last phase: restores the state that the run resumes, and runs the epochs."""
        config, state, callbacks = trainer.config, trainer._state, trainer._callbacks
        with trainer.graph.as_default(), trainer.sess.as_default():
            state.load(callbacks, config.starting_epoch)
            step = get_global_step_value()
            self.loop.config(config.steps_per_epoch, state.first_epoch, config.max_epoch, step)
            if state.first_epoch > config.max_epoch:
                logger.info(
                    f"The run is over: it has its {config.max_epoch} epochs. For a new one, give "
                    'another log directory, delete this one, or use resume="never". To train '
                    "longer, give a greater max_epoch."
                )
            callbacks.before_train()
            state.load_random()
            trainer.record.enter_loop()
            self.loop.run(trainer, callbacks, state.position)

    def _end(self, trainer: Any, error: Optional[BaseException]) -> Ending:
        """Ends the run: whatever goes wrong in one part of this, the others follow."""
        hooked_sess = trainer.hooked_sess
        by_hook = error is not None and hooked_sess is not None and hooked_sess.hook_error is error
        in_step = self.loop.in_step and not by_hook
        if isinstance(error, StopRequested) or (isinstance(error, QUEUE_ERRORS) and in_step):
            self._token.wait(HEAR_SECONDS)  # what has caused it may be about to say why
        verdict: Optional[BaseException] = None
        try:
            verdict = judge(error, self._token.reason, self.loop, in_step, self._closed_queues)
            if isinstance(verdict, TrainingInterrupted):
                _attempt(trainer._save_at_end)
            if isinstance(error, StopTraining):
                self.loop.global_step = self.loop.steps_taken  # a step that it ends is not finished
        except BaseException as unexpected:
            verdict = verdict or unexpected
        finally:
            late = self._teardown(trainer._callbacks, trainer.hooked_sess or trainer.sess)
        log_late_failures(self._token)
        ending = Ending.of(error, verdict or late)
        self.result = ending.result
        return ending

    def _teardown(self, callbacks: Any, closing: Any) -> Optional[BaseException]:
        """Stops, joins and closes everything; returns the first error on the way."""
        errors: List[Optional[BaseException]] = []
        self._token.request(Finished())
        predictors = [] if self.sess is None else MultiThreadAsyncPredictor._of(self.sess.graph)
        for each in predictors:
            each._end_training()
        try:
            if self.sess is not None:
                with self.sess.graph.as_default(), self.sess.as_default():
                    with QueueDrain(self.queues, self.sess):
                        callbacks.after_train()
        except BaseException as error:
            errors.append(error)
        errors.append(self.release_inputs())
        for each in predictors:
            each._close(_REST_SECONDS)
        try:
            if closing is not None:
                closing.close()
        except BaseException as error:
            errors.append(error)
        for each in predictors:  # the session has cancelled what was under way
            each._close(_REST_SECONDS)
        return next((each for each in errors if each is not None), None)

    def release_inputs(self) -> Optional[BaseException]:
        """Releases the input sources; logs all errors and returns the first."""
        first: Optional[BaseException] = None
        while self.inputs:
            source = self.inputs.pop()
            try:
                source.release()
            except BaseException as error:  # the others have processes, too
                logger.error(f"{type(source).__name__} could not be released: {error!r}")
                first = first or error
        return first

    def interruptible(
        self, function: Callable[[], Any], end_wait: Callable[[], None], guard: SignalGuard
    ) -> Any:
        """See `TrainerContract`; `unblock` calls `end_wait` while the function runs."""
        self._end_wait = end_wait  # before the look at `_unblocked`, which `unblock` sets first
        try:
            if self._unblocked:
                raise StopRequested(self._token.reason)
            return guard.interruptible(function)
        except Exception as error:
            ended = is_end_of_group(error, self._token)
            if not self._token.requested:
                raise
            if not (ended or isinstance(error, DataFlowTerminated)):
                logger.warning(f"While the run was ending, the data failed: {error!r}")
            raise StopRequested(self._token.reason) from error
        finally:
            self._end_wait = None

    def unblock(self) -> None:
        """Ends the wait of a step, or of a callback, for data. May be called on any thread.

        Queues are left alone while the main thread does not wait in TensorFlow. A full one is not
        closed, for TensorFlow logs an enqueue that is cancelled; room in it ends its wait.
        """
        self._unblocked = True
        end_wait = self._end_wait
        if end_wait is not None:
            end_wait()
        for source in self.inputs:
            source.unblock()
        frame = sys._current_frames().get(threading.main_thread().ident or 0)
        waits = frame is self._seen and is_in_tensorflow(frame)
        self._seen = frame
        for queue in self.queues if waits else []:
            with suppress(RuntimeError, tf.errors.OpError):  # the session is being closed
                if not queue.make_room(self.sess):
                    queue.close(self.sess)

    def _closed_queues(self) -> List[str]:
        try:
            closed = [each for each in self.queues if not each.ended and each.is_closed(self.sess)]
            return [f"Queue {each.op.name!r}" for each in closed]
        except RuntimeError:  # the session is closed, too
            return []


def _attempt(save: Callable[[], None]) -> None:
    try:
        save()
    # The run ends all the same, and what was saved before stays.
    except (RuntimeError, OSError, StopRequested) as error:
        logger.error(f"The run was not saved where it ends: {error}")
    except BaseException:
        logger.exception("The run was not saved where it ends.")


class TrainLoop:
    """Runs epochs of steps, and counts both.

    Attributes:
      epoch_num, local_step, global_step, steps_per_epoch, starting_epoch, max_epoch: as those of
        the `Trainer`.
      steps_done: how many steps of the running epoch have finished.
      steps_taken: how many steps have finished in all.
      begun: whether `run` has begun, so that the state of the run can be saved.
    """

    def __init__(self) -> None:
        self.begun = False
        self.config(steps_per_epoch=0, starting_epoch=1, max_epoch=0)

    def config(
        self, steps_per_epoch: int, starting_epoch: int, max_epoch: int, global_step: int = 0
    ) -> None:
        """Sets the plan of a run, and how many steps earlier runs have taken."""
        self.steps_per_epoch, self.max_epoch = steps_per_epoch, max_epoch
        self.starting_epoch = starting_epoch
        self.global_step = self.steps_taken = global_step
        self._enter_epoch(self.starting_epoch - 1, 0)

    @property
    def in_step(self) -> bool:
        """Whether a step has begun and not finished."""
        return self.global_step != self.steps_taken

    def run(self, trainer: Any, callbacks: Any, position: Optional[Position] = None) -> None:
        """Runs the epochs of the plan.

        Args:
          trainer: whose steps they are, with a session.
          callbacks: the group of all; its `before_train` has returned.
          position: where an earlier run was saved; None to begin with a whole epoch.
        """
        self.begun = True
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
            self._run_steps(trainer, callbacks.trigger_step)
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

    def _run_steps(self, trainer: Any, trigger_step: Callable[[], None]) -> None:
        run_step, should_stop = trainer.run_step, trainer.hooked_sess.should_stop
        end_step = trainer._end_step
        while self.steps_done < self.steps_per_epoch:
            self.local_step += 1
            self.global_step += 1
            run_step()
            self.steps_done += 1
            self.steps_taken = self.global_step
            if should_stop():
                raise StopTraining(f"A hook asked for the end at global_step={self.global_step}.")
            trigger_step()
            end_step()

    def _enter_epoch(self, epoch_num: int, steps_done: int) -> None:
        """Enters an epoch, of which an earlier run may have done some steps."""
        self.epoch_num = epoch_num
        self.local_step = steps_done - 1
        self.steps_done = steps_done

    def take_last_step(self, run_step: Callable[[], None]) -> None:
        """Runs a step after the loop was left, without its callbacks' turn behind it."""
        self.local_step, self.global_step = self.steps_done, self.steps_taken + 1
        run_step()
        self.steps_done, self.steps_taken = self.steps_done + 1, self.global_step
