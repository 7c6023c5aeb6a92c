"""How a run has ended, and what it says then: why, where its model is, what can be done next."""

import shlex
import signal
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

from tensorpack.callbacks.best_saver import best_kept
from tensorpack.tfutils._origin import line_of_failure
from tensorpack.tfutils.callback import StopTraining
from tensorpack.utils import logger
from tensorpack.utils._tracebacks import shorten_uncaught
from tensorpack.utils.notes import add_note

from .signals import TrainingInterrupted

__all__ = ["Ending", "MODEL", "RESUME", "check_commands", "log_ending"]

_HOOKS = frozenset(
    ["setup_graph", "before_train", "before_epoch", "before_run", "after_run", "trigger_step"]
    + ["check_over", "after_epoch", "trigger_epoch", "after_train", "state_dict"]
    + ["load_state_dict"]
)

RESUME = "resume"  # the command of this name continues the run
MODEL = "{model}"  # stands in commands for the path of the last checkpoint

_WHERE = {
    "finished": "The model is",
    "stopped": "The run is saved in",
    "failed": "The last save before the failure is",
}


class Ending(NamedTuple):
    """How a run has ended; its record, its log and the other processes of its group hear the same.

    Attributes:
      raises: what the trainer raises, or None.
      result: "finished", "stopped" by a signal, or "failed".
      message: why, "" if it came to its last epoch.
      code: exit code of the process.
    """

    raises: Optional[BaseException]
    result: str
    message: str
    code: int

    @classmethod
    def judge(cls, error: Optional[BaseException], raises: Optional[BaseException]) -> "Ending":
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


def check_commands(commands: Optional[Mapping[str, str]]) -> Dict[str, str]:
    """Checks the commands of a `TrainConfig`.

    Raises:
      TypeError: they are not a mapping of text to text.
    """
    if commands is None:
        return {}
    items = [*commands, *commands.values()] if isinstance(commands, Mapping) else [commands, None]
    if not all(isinstance(each, str) for each in items):
        raise TypeError(
            "commands must be a dictionary of what they do to commands, such as "
            f'{{"evaluate": "python play.py --load {MODEL}"}}, got {commands!r}.'
        )
    return dict(commands)


def log_ending(trainer: Any, callbacks: Any, ending: Ending) -> None:
    """Logs why a run failed, where the last checkpoint is and what can be done with it.

    The traceback goes to `log.log`. What the interpreter prints of the error, if nobody catches it,
    is the part of it that lies in the user's own files.

    Args:
      trainer: the `Trainer`, after its shutdown.
      callbacks: the group of all callbacks, None if there is none yet.
      ending: how it has ended.
    """
    try:
        if isinstance(ending.raises, Exception):
            shorten_uncaught()
            _explain(trainer, callbacks, ending.raises)
        _log_model(trainer, callbacks, ending.result)
    except Exception:  # how the run has ended must not be replaced by what is said about it
        logger.exception("The end of the run could not be described.")


def _explain(trainer: Any, callbacks: Any, error: Exception) -> None:
    try:
        _name_callback(error, [] if callbacks is None else callbacks.cbs)
        made = line_of_failure(error, trainer.graph)
        if made is not None:
            add_note(error, made)
    finally:
        logger.traceback_to_file(error)


def _name_callback(error: Exception, callbacks: List[Any]) -> None:
    """Adds to an error in which callback it was raised, if it was in one."""
    trace = error.__traceback__
    while trace is not None:
        owner, hook = trace.tb_frame.f_locals.get("self"), trace.tb_frame.f_code.co_name
        if hook in _HOOKS and any(owner is each for each in callbacks):
            source = getattr(owner, "_source", None)  # whose callback the user has not made
            who = f"callback {owner}" if source is None else f"input {type(source).__name__}"
            add_note(error, f"It was raised by the {who} in its {hook}.")
            return
        trace = trace.tb_next


def _log_model(trainer: Any, callbacks: Any, result: str) -> None:
    saver = trainer.state_saver
    if saver is None or saver.last_path is None or not trainer.is_chief:
        return
    commands = dict(trainer.config.commands)
    resume = commands.pop(RESUME, None)
    lines = [f"{_WHERE[result]} {saver.last_path}."]
    lines += [f"The best is {path} ({why})." for path, why in best_kept(callbacks.cbs)]
    lines += _how_to_resume(resume, trainer.config.resume, result == "finished")
    lines += [f"To {purpose}: {command}" for purpose, command in commands.items()]
    for line in lines:
        logger.info(line.replace(MODEL, shlex.quote(saver.last_path)))


def _how_to_resume(command: Optional[str], policy: str, finished: bool) -> List[str]:
    purpose = "To train longer, with more epochs" if finished else "To resume"
    if command is not None:
        return [f"{purpose}: {command}"]
    if finished:
        return []
    if policy in ("auto", "must"):
        return [f"{purpose}: start the program again, which has resume={policy!r}."]
    return [f'{purpose}: start the program with TrainConfig(resume="auto") and this log directory.']
