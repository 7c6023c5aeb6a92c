"""Ends a run in order, and tells truthfully how it ended.

"The data ended" and "something broke" look the same from inside a step: an error from a closed
queue. So the type of such an error proves nothing once a reason was given to the run's stop token.
"""

import signal
from typing import Any, Callable, List, Optional, Sequence

from tensorpack.compat import is_name_of_tf1
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlowTerminated
from tensorpack.input_source import InputSource
from tensorpack.tfutils.callback import StopTraining
from tensorpack.tfutils.queues import QueueClosed, QueueControl, QueueDrain
from tensorpack.utils import logger
from tensorpack.utils.stopping import (
    EndOfData,
    Failed,
    Finished,
    Interrupted,
    StopReason,
    StopRequested,
    StopToken,
)

from .ending import Ending
from .loop import TrainLoop
from .signals import TrainingInterrupted

__all__ = ["DataEnded", "Shutdown"]

_QUEUE_ERRORS = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
_RUN_AS_TF1 = (
    "This is a script for TensorFlow 1. It runs on TensorFlow 2 by `python -m tensorpack.tf1 "
    "script.py args...`; or let it import tensorflow.compat.v1 as tf."
)


class DataEnded(RuntimeError):
    """The data ended before the training did."""


class Shutdown:
    """Stops and closes what a run has opened; the reason of its stop token decides how it ended.

    Attributes:
      inputs: the input sources that it releases at the end.
      result: that of the `Ending` of the run, "" before.
    """

    def __init__(self, token: StopToken, loop: TrainLoop) -> None:
        self._token = token
        self._loop = loop
        self.inputs: List[InputSource] = []
        self.result = ""
        self._queues: Sequence[QueueControl] = []
        self._sess: Any = None
        self._close: Callable[[], None] = lambda: None
        self._end_wait: Optional[Callable[[], None]] = None
        self._unblocked = False

    def releases(self, source: InputSource) -> None:
        """Takes an input source, to release it at the end. Called before its setup."""
        self.inputs.append(source)

    def closes(self, sess: Any, queues: Sequence[QueueControl], close: Callable[[], None]) -> None:
        """Takes the session, the queues of its graph, and what closes the session at the end."""
        self._sess, self._queues, self._close = sess, queues, close

    def interruptible(self, function: Callable[[], Any], end_wait: Callable[[], None]) -> Any:
        """See `TrainerContract`; `unblock` calls `end_wait` while the function runs."""
        if self._unblocked:
            raise StopRequested(self._token.reason)
        self._end_wait = end_wait
        try:
            return function()
        except Exception as error:
            if not self._token.requested:
                raise
            if not isinstance(error, DataFlowTerminated):
                logger.warning(f"While the run was ending, the data failed: {error!r}")
            raise StopRequested(self._token.reason) from error
        finally:
            self._end_wait = None

    def unblock(self) -> None:
        """Ends the wait of a step, or of a callback, for data. May be called on any thread."""
        self._unblocked, end_wait = True, self._end_wait
        if end_wait is not None:
            end_wait()
        for source in self.inputs:
            source.unblock()
        for queue in self._queues:
            queue.close(self._sess)

    def run(
        self,
        error: Optional[BaseException],
        callbacks: Any,
        save: Callable[[], None],
        raised_by_hook: bool = False,
    ) -> Ending:
        """Ends the run: whatever goes wrong in one part of this, the others follow.

        Args:
          error: what the main thread raised, None if it came to the end.
          callbacks: the group of all; not used if there is no session yet.
          save: saves the state of the run; called if a signal ended it.
          raised_by_hook: whether `error` came from a hook of the session, so that the step itself
            has not failed.

        Returns:
          how it has ended, with what the trainer is to raise.
        """
        verdict: Optional[BaseException] = None
        try:
            verdict = self._judge(error, self._loop.in_step and not raised_by_hook)
            if isinstance(verdict, TrainingInterrupted):
                _attempt_save(save)
        except BaseException as unexpected:
            verdict = verdict or unexpected
        finally:
            late = self._teardown(callbacks)
        for reason in self._token.late_reasons:
            if isinstance(reason, Failed) and not isinstance(reason.error, _QUEUE_ERRORS):
                logger.warning(f"While the run was ending, {reason.where} failed: {reason.error!r}")
        ending = Ending.judge(error, verdict or late)
        self.result = ending.result
        return ending

    def release_inputs(self) -> Optional[BaseException]:
        """Releases the input sources, also those that the callbacks have released already; logs all
        errors and returns the first.
        """
        first: Optional[BaseException] = None
        while self.inputs:
            source = self.inputs.pop()
            try:
                source.release()
            except BaseException as error:  # the others have processes, too
                logger.error(f"{type(source).__name__} could not be released: {error!r}")
                first = first or error
        return first

    def _judge(self, error: Optional[BaseException], in_step: bool) -> Optional[BaseException]:
        """Returns what the trainer is to raise, None for an end in order; logs it."""
        reason = self._token.reason
        failed = f"Training failed at global_step={self._loop.global_step}"
        if isinstance(reason, Failed):
            logger.error(f"{failed} because of {reason.where}.")
            if error is not None and not isinstance(error, (StopRequested, *_QUEUE_ERRORS)):
                _add(error, reason.error)
            return reason.error
        if error is None:
            return None  # a signal that came after the last step changes nothing
        if isinstance(error, StopTraining):
            logger.info(f"Training was stopped. {error}".rstrip())
            return None
        stopped = isinstance(error, (StopRequested, *_QUEUE_ERRORS)) or _is_exit_0(error)
        if isinstance(reason, Interrupted) and stopped:
            return _interrupted(reason.signum)
        if isinstance(reason, Finished) and isinstance(error, StopRequested):
            logger.info("Training was stopped through its stop token.")
            return None
        if _is_exit_0(error):
            step = self._loop.global_step
            logger.info(f"Training was ended at global_step={step} by {error!r}.")
            return error
        if isinstance(error, StopRequested) or (isinstance(error, _QUEUE_ERRORS) and in_step):
            error = self._data_error(error, reason)
        logger.error(f"{failed} with {type(error).__name__}.")
        if is_name_of_tf1(error):
            logger.error(_RUN_AS_TF1)
        return error

    def _data_error(self, error: BaseException, reason: Optional[StopReason]) -> BaseException:
        """Returns what it means that the step got no data."""
        loop = self._loop
        where = (
            f"at step {loop.local_step + 1} of {loop.steps_per_epoch} of epoch {loop.epoch_num} "
            f"(global_step {loop.global_step})"
        )
        closed = self._closed_queues()
        if isinstance(error, tf.errors.CancelledError) and not closed:
            return error
        if isinstance(reason, EndOfData):
            verdict: RuntimeError = DataEnded(
                f"{reason.where} gave its last datapoint {where}. Train for fewer steps, or repeat "
                "the data."
            )
        elif closed:
            verdict = QueueClosed(
                f"{' and '.join(closed)} was closed {where}, and the run's stop token has no "
                "reason. Before closing a queue that the training reads from, call "
                "trainer.stop_token.request(reason)."
            )
        else:
            verdict = DataEnded(
                f"The input ran out {where}. Train for fewer steps, or repeat the data."
            )
        verdict.__cause__ = error
        return verdict

    def _closed_queues(self) -> List[str]:
        try:
            closed = [
                each for each in self._queues if not each.ended and each.is_closed(self._sess)
            ]
        except RuntimeError:  # the session is closed, too
            return []
        return [f"Queue {each.op.name!r}" for each in closed]

    def _teardown(self, callbacks: Any) -> Optional[BaseException]:
        """Stops, joins and closes everything; returns the first error on the way."""
        errors: List[Optional[BaseException]] = []
        self._token.request(Finished())
        try:
            if self._sess is not None:
                with self._sess.graph.as_default(), self._sess.as_default():
                    with QueueDrain(self._queues, self._sess):
                        callbacks.after_train()
        except BaseException as error:
            errors.append(error)
        errors.append(self.release_inputs())
        try:
            self._close()
        except BaseException as error:
            errors.append(error)
        return next((each for each in errors if each is not None), None)


def _attempt_save(save: Callable[[], None]) -> None:
    try:
        save()
    # The run ends all the same, and what was saved before stays.
    except (RuntimeError, OSError, StopRequested) as error:
        logger.error(f"The run was not saved where it ends: {error}")
    except BaseException:
        logger.exception("The run was not saved where it ends.")


def _interrupted(signum: int) -> TrainingInterrupted:
    what = "Ctrl-C" if signum == signal.SIGINT else signal.Signals(signum).name
    logger.info(f"Detected {what} and exiting main loop.")
    return TrainingInterrupted(signum)


def _is_exit_0(error: BaseException) -> bool:
    return isinstance(error, SystemExit) and error.code in (None, 0)


def _add(other: BaseException, error: BaseException) -> None:
    """Logs another error of the run, and shows it with `error` if that has no other context."""
    if other is error:
        return
    logger.error(f"The main thread failed as well: {other!r}")
    if error.__cause__ is None and error.__context__ is None:
        error.__context__ = other
