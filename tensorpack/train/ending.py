"""How a run has ended: judged once, and what is logged of it, where its model is, what is next."""

import shlex
import signal
import sys
from typing import Any, Callable, List, NamedTuple, Optional

from tensorpack.callbacks.best_value import best_paths
from tensorpack.compat import is_name_of_tf1
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils._origin import line_of_failure
from tensorpack.tfutils.callback import StopTraining
from tensorpack.tfutils.queues import QueueClosed
from tensorpack.utils import logger
from tensorpack.utils._tracebacks import add_note
from tensorpack.utils._words import command_line, command_text
from tensorpack.utils.stopping import (
    EndOfData,
    Failed,
    Finished,
    Interrupted,
    StopRequested,
    StopToken,
)

QUEUE_ERRORS = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
_RUN_AS_TF1 = (
    "This is a script for TensorFlow 1. It runs on TensorFlow 2 by `python -m tensorpack.tf1 "
    "script.py args...`; or let it import tensorflow.compat.v1 as tf."
)

_HOOKS = frozenset(
    "setup_graph before_train before_epoch before_run after_run trigger_step check_over "
    "after_epoch trigger_epoch after_train state_dict load_state_dict".split()
)

_WHERE = {
    "finished": "The model is",
    "stopped": "The run is saved in",
    "failed": "The last save before that is",
}


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


class DataEnded(RuntimeError):
    """The data ended before the training did."""


class Ending(NamedTuple):
    """How a run has ended; its record, its log and the other processes of its group hear the same.

    Attributes:
      raises: what the trainer raises, or None.
      result: "finished", "stopped" by a signal, or "failed".
      message: why, "" if it came to its last epoch.
    """

    raises: Optional[BaseException]
    result: str
    message: str
    code: int

    @classmethod
    def of(cls, error: Optional[BaseException], raises: Optional[BaseException]) -> "Ending":
        """Returns what it means that the trainer `raises` this, after the main thread an error."""
        if isinstance(raises, TrainingInterrupted):
            return cls(raises, "stopped", signal.Signals(raises.signum).name, 128 + raises.signum)
        if raises is None:
            text = f"StopTraining: {error}" if str(error) else "StopTraining"
            return cls(None, "finished", text if isinstance(error, StopTraining) else "", 0)
        code: Any = raises.code if isinstance(raises, SystemExit) else 1
        if code in (None, 0):
            return cls(raises, "finished", repr(raises), 0)
        text = f"{type(raises).__name__}: {raises}"
        return cls(raises, "failed", text, code if isinstance(code, int) else 1)


def judge(
    error: Optional[BaseException], loop: Any, in_step: bool, closed_queues: Callable[[], List[str]]
) -> Optional[BaseException]:
    """Returns what the trainer is to raise, None for an end in order; logs it.

    "The data ended" and "something broke" look the same from inside a step: an error from a closed
    queue. So the type of such an error proves nothing once there is a reason.

    Args:
      error: what the main thread raised, None if it came to the end.
      in_step: whether the step itself has failed, and not a hook of the session.
      closed_queues: returns the names of the queues that are closed and should not be.
    """
    failed = f"Training failed at global_step={loop.global_step}"
    reason, stopped = loop.stop_token.reason, isinstance(error, (StopRequested, *QUEUE_ERRORS))
    if isinstance(reason, Failed):
        first = reason.error
        logger.error(f"{failed} because of {reason.where}.")
        if error not in (None, first) and not stopped:
            logger.error(f"The main thread failed as well: {error!r}")
            if first.__cause__ is None and first.__context__ is None:
                first.__context__ = error  # so that both are shown
        return first
    if error is None:
        return None  # a signal that came after the last step changes nothing
    if isinstance(error, StopTraining):
        logger.info(f"Training was stopped. {error}".rstrip())
        return None
    if isinstance(reason, Interrupted) and (stopped or _is_exit_0(error)):
        what = "Ctrl-C" if reason.signum == signal.SIGINT else signal.Signals(reason.signum).name
        logger.info(f"Detected {what} and exiting main loop.")
        return TrainingInterrupted(reason.signum)
    if isinstance(reason, Finished) and isinstance(error, StopRequested):
        logger.info("Training was stopped through its stop token.")
        return None
    if _is_exit_0(error):
        logger.info(f"Training was ended at global_step={loop.global_step} by {error!r}.")
        return error
    if isinstance(error, StopRequested) or (isinstance(error, QUEUE_ERRORS) and in_step):
        error = _data_error(error, loop, closed_queues())
    logger.error(f"{failed} with {type(error).__name__}.")
    if is_name_of_tf1(error):
        logger.error(_RUN_AS_TF1)
    return error


def _data_error(error: BaseException, loop: Any, closed: List[str]) -> BaseException:
    """Returns the error to raise for a step that got no data."""
    where = (
        f"at step {loop.local_step + 1} of {loop.steps_per_epoch} of epoch {loop.epoch_num} "
        f"(global_step {loop.global_step})"
    )
    reason = loop.stop_token.reason
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


def _is_exit_0(error: BaseException) -> bool:
    return isinstance(error, SystemExit) and error.code in (None, 0)


def log_late_failures(token: StopToken) -> None:
    """Logs what failed after the reason for which the run ended."""
    for reason in token.late_reasons:
        if isinstance(reason, Failed) and not isinstance(reason.error, QUEUE_ERRORS):
            logger.warning(f"While the run was ending, {reason.where} failed: {reason.error!r}")


def log_ending(trainer: Any, ending: Ending) -> None:
    """Logs why a run failed, where the last checkpoint is and what can be done with it.

    The traceback goes to `log.log`; the interpreter prints it if it is not caught.
    """
    callbacks = [] if trainer._callbacks is None else trainer._callbacks.cbs
    try:
        if isinstance(ending.raises, Exception):
            _explain(trainer, callbacks, ending.raises)
        _log_model(trainer, callbacks, ending.result)
    except Exception:  # how the run has ended must not be replaced by what is said about it
        logger.exception("The end of the run could not be described.")


def _explain(trainer: Any, callbacks: List[Any], error: Exception) -> None:
    try:
        _name_callback(error, callbacks)
        origin = line_of_failure(error, trainer.graph)
        if origin is not None:
            add_note(error, origin)
    finally:
        logger.detail("The traceback:", exc_info=error)


def _name_callback(error: Exception, callbacks: List[Any]) -> None:
    """Adds to an error in which callback it was raised, if it was in one."""
    trace = error.__traceback__
    while trace is not None:
        owner, hook = trace.tb_frame.f_locals.get("self"), trace.tb_frame.f_code.co_name
        hook = hook.lstrip("_")
        if hook in _HOOKS and any(owner is cb for cb in callbacks):
            of_input = type(owner).__module__.startswith("tensorpack.input_source.")
            source = getattr(owner, "_source", None) if of_input else None  # what the user made
            who = f"callback {owner}" if source is None else f"input {type(source).__name__}"
            add_note(error, f"It was raised by the {who} in its {hook}.")
            return
        trace = trace.tb_next


def _log_model(trainer: Any, callbacks: List[Any], result: str) -> None:
    saver = trainer.state_saver
    if saver is None or saver.last_path is None or not trainer.is_chief:
        return
    commands, policy = dict(trainer.config.commands), trainer.config.resume
    resume = commands.pop("resume", None)
    if resume is None and result != "finished":
        resume = 'start the program with TrainConfig(resume="auto") and this log directory.'
        if policy in ("auto", "must"):
            is_script = hasattr(sys.modules["__main__"], "__file__")  # and no notebook
            resume = command_text(command_line()) if is_script else "run the program again."
    if resume is not None:
        purpose = "train longer, with more epochs" if result == "finished" else "resume"
        commands = {purpose: resume, **commands}
    is_older = result == "stopped" and not saver.last_path.endswith(f"-{trainer.steps_taken}")
    lines = [f"{_WHERE['failed' if is_older else result]} {saver.last_path}."]
    lines += [f"The best is {path} ({why})." for path, why in best_paths(callbacks)]
    lines += [f"To {purpose}: {command}" for purpose, command in commands.items()]
    for line in lines:
        logger.info(line.replace("{model}", shlex.quote(saver.last_path)))
