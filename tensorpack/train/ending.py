"""Sees a run to its end: stops what runs beside it, in order, and says truthfully how it ended.

"The data is over" and "something broke" look the same from inside a step: an error from a closed
queue. So nothing is concluded from the type of such an error while somebody has given a reason to
the run's stop token.
"""

import signal
import threading
import time
from contextlib import contextmanager, suppress
from typing import Any, Callable, Iterator, List, Optional

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import InputSource
from tensorpack.input_source.errors import QueueClosed
from tensorpack.tfutils.callback import StopTraining
from tensorpack.tfutils.common import get_global_step_value
from tensorpack.tfutils.queues import QueueControl, all_queues
from tensorpack.tfutils.staging_areas import (
    StagingControl,
    StagingWatch,
    all_staging_areas,
    is_woken,
)
from tensorpack.utils import logger
from tensorpack.utils.stopping import (
    EndOfData,
    Failed,
    Finished,
    Interrupted,
    StopReason,
    StopRequested,
)

from .signals import DataEnded, TrainingInterrupted

__all__ = ["Ending"]

_QUEUE_ERRORS = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
_DRAIN_POLL_SECONDS = 0.005
# Producers that look at their stop flag leave within this time; those that do not find the queue
# closed.
_COURTESY_SECONDS = 2.0


class Ending:
    """Runs the phases of a trainer, tears the run down and raises what ended it.

    Args:
      trainer: the trainer; its session, callbacks, guard and stop token are used.
    """

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self._queues: List[QueueControl] = []
        self._areas: List[StagingControl] = []
        self._watch = StagingWatch([])
        self._inputs: List[InputSource] = []

    def releases(self, source: InputSource) -> None:
        """Has the end of the run release an input source. Called before its setup."""
        self._inputs.append(source)

    def release_inputs(self) -> Optional[BaseException]:
        """Gives back what the setups of the input sources took, where their callbacks did not.

        Returns:
          the first error, logged.
        """
        first: Optional[BaseException] = None
        while self._inputs:
            source = self._inputs.pop()
            try:
                source.release()
            except BaseException as error:  # the others have processes, too
                logger.error(f"{type(source).__name__} could not be released: {error!r}")
                first = first or error
        return first

    def find_queues(self) -> None:
        """Prepares to end every queue of the graph, and the waits for its staging areas. Called
        when all ops are there, before it is finalised.
        """
        self._queues = all_queues(self._trainer.graph)
        self._areas = all_staging_areas(self._trainer.graph)
        self._watch = StagingWatch(self._areas)

    def run(self, *phases: Callable[[], None]) -> None:
        """Runs the phases; whatever happens, the teardown; and raises how it ended, unless that was
        in order.
        """
        trainer = self._trainer
        trainer._guard.unblock = self._unblock
        error: Optional[BaseException] = None
        try:
            for phase in phases:
                phase()
        except BaseException as caught:  # judged below, once everything has been stopped
            error = caught
        verdict = self._judge(error, trainer.stop_token.reason)
        trainer._guard.left_loop()
        self._watch.stop()
        if isinstance(verdict, TrainingInterrupted):
            self._save_state()
        late = self._teardown()
        for reason in trainer.stop_token.late_reasons:
            if isinstance(reason, Failed) and not _is_of_the_end(reason.error):
                logger.warning(f"While the run was ending, {reason.where} failed: {reason.error!r}")
        verdict = verdict or late
        if verdict is not None:
            raise verdict

    def _judge(
        self, error: Optional[BaseException], reason: Optional[StopReason]
    ) -> Optional[BaseException]:
        """Returns what `train` is to raise, None for an end in order; says so in the log."""
        if isinstance(reason, Failed):
            self._say_failed(f"because of {reason.where}")
            return reason.error
        if error is None:
            return None  # a signal that came after the last step changes nothing
        if isinstance(error, StopTraining):
            logger.info(f"Training was stopped. {error}".rstrip())
            return None
        woken = reason is not None and is_woken(error)  # nobody is woken without a reason
        if not isinstance(error, (StopRequested,) + _QUEUE_ERRORS) and not woken:
            self._say_failed(f"with {type(error).__name__}")
            return error
        if isinstance(reason, Interrupted):
            return self._interrupted(reason.signum)
        return self._data_error(error, reason)

    def _say_failed(self, how: str) -> None:
        logger.error(f"Training failed at global_step={self._trainer.global_step} {how}.")

    @staticmethod
    def _interrupted(signum: int) -> TrainingInterrupted:
        what = "Ctrl-C" if signum == signal.SIGINT else signal.Signals(signum).name
        logger.info(f"Detected {what} and exiting main loop.")
        return TrainingInterrupted(signum)

    def _save_state(self) -> None:
        """Saves where the run was interrupted, unless nothing can be saved or it is to be quick."""
        trainer = self._trainer
        begun = trainer._epochs.begun
        if trainer.state_saver is None or not begun or trainer._guard.skip_optional:
            return
        with trainer.graph.as_default(), trainer.sess.as_default():
            try:
                if get_global_step_value() != trainer.loop.steps_taken:
                    raise RuntimeError("a step was cut off in the middle")
                trainer.state_saver.save_interrupted()
            # The run ends all the same, and what was saved before stays.
            except (RuntimeError, OSError) as error:
                logger.error(f"The run was not saved where it ends: {error}")
            except Exception:
                logger.exception("The run was not saved where it ends.")

    def _data_error(self, error: BaseException, reason: Optional[StopReason]) -> BaseException:
        trainer = self._trainer
        where = (
            f"at step {trainer.local_step + 1} of {trainer.steps_per_epoch} of epoch "
            f"{trainer.epoch_num} (global_step {trainer.global_step})"
        )
        closed = self._closed_queues()
        if isinstance(error, tf.errors.CancelledError) and not closed:
            self._say_failed(f"with {type(error).__name__}")
            return error
        if isinstance(reason, EndOfData):
            verdict: RuntimeError = DataEnded(
                f"{reason.where} gave its last datapoint {where}. Train for fewer steps, or repeat "
                "the data."
            )
        elif closed:
            verdict = QueueClosed(
                f"{' and '.join(closed)} was closed {where}, and nobody said why. Whoever closes "
                "a queue that the training reads from must give its reason to trainer.stop_token "
                "first."
            )
        else:
            verdict = DataEnded(
                f"The input ran out {where}. Train for fewer steps, or repeat the data."
            )
        self._say_failed(f"with {type(verdict).__name__}")
        verdict.__cause__ = error
        return verdict

    def _teardown(self) -> Optional[BaseException]:
        """Stops, joins and closes everything; returns the first error on the way."""
        trainer = self._trainer
        trainer.stop_token.request(Finished())
        if trainer.sess is None:
            return self.release_inputs()
        error: Optional[BaseException] = None
        with trainer.graph.as_default(), trainer.sess.as_default(), self._draining():
            try:
                trainer._callbacks.after_train()
            except (
                BaseException
            ) as caught:  # the session must be closed all the same; run() raises it
                error = caught
        late = self.release_inputs()
        self._end_waits()
        (trainer.hooked_sess or trainer.sess).close()
        return error or late

    def _closed_queues(self) -> List[str]:
        sess = self._trainer.sess
        try:
            return [f"Queue {each.op.name!r}" for each in self._queues if each.is_closed(sess)]
        except RuntimeError:  # the session is closed, too
            return []

    def _unblock(self) -> None:
        """Ends the wait of a step, or of a callback, for what will not come any more."""
        self._close_queues()
        if self._trainer.sess is not None:
            self._watch.start(self._trainer.sess)

    def _close_queues(self) -> None:
        """Ends all waiting on queues, at once. For when nobody should be waiting there any more."""
        if self._trainer.sess is None:
            return
        with suppress(RuntimeError):  # somebody closed the session: nobody waits in it any more
            for queue in self._queues:
                queue.close(self._trainer.sess, cancel=True)

    def _end_waits(self) -> None:
        """Ends all waiting on queues and staging areas, when nothing more is to be run."""
        self._close_queues()
        if self._trainer.sess is None:
            return
        with suppress(RuntimeError, tf.errors.CancelledError):  # as above
            for area in self._areas:
                area.wake(self._trainer.sess)

    @contextmanager
    def _draining(self) -> Iterator[None]:
        """Keeps making room in full queues, so that whoever waits to enqueue comes out and sees its
        stop flag.
        """
        done = threading.Event()
        thread = threading.Thread(target=self._drain, args=(done,), name="QueueDrain", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system has no more threads; the rest must be stopped
            logger.warning(f"Nobody empties the queues at the end of the run: {error}.")
        try:
            yield
        finally:
            done.set()
            if thread.ident is not None:
                thread.join()

    def _drain(self, done: threading.Event) -> None:
        sess, start, full = self._trainer.sess, time.monotonic(), False
        try:
            while not done.wait(0 if full else _DRAIN_POLL_SECONDS):
                full = False
                for queue in self._queues:
                    full = queue.make_room(sess) or full
                if time.monotonic() - start > _COURTESY_SECONDS:
                    self._end_waits()
                    return
        except _QUEUE_ERRORS + (RuntimeError,):
            pass  # somebody closed a queue, or the session: nobody waits on it any more
        except Exception:
            logger.exception("Could not empty the queues at the end of the run.")


def _is_of_the_end(error: BaseException) -> bool:
    """Whether a wait was ended, as it is with every run that ends."""
    return isinstance(error, _QUEUE_ERRORS) or is_woken(error)
