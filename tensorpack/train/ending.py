"""What a run says when it is over: why it failed, where its model is, and what can be done next."""

import shlex
from typing import Any, Dict, List, Mapping, Optional

from tensorpack.callbacks.best_saver import best_kept
from tensorpack.tfutils._origin import line_of_failure
from tensorpack.utils import logger
from tensorpack.utils._tracebacks import shorten_uncaught
from tensorpack.utils.notes import add_note

from .signals import TrainingInterrupted

__all__ = ["MODEL", "RESUME", "check_commands", "log_ending"]

_HOOKS = frozenset(
    ["setup_graph", "before_train", "before_epoch", "before_run", "after_run", "trigger_step"]
    + ["after_epoch", "trigger_epoch", "after_train", "state_dict", "load_state_dict"]
)

RESUME = "resume"  # the command of this name continues the run
MODEL = "{model}"  # stands in commands for the path of the last checkpoint


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


def log_ending(trainer: Any, callbacks: Any, verdict: Optional[BaseException]) -> None:
    """Logs why a run failed, where the last checkpoint is and what can be done with it.

    The traceback goes to `log.log`. What the interpreter prints of the error, if nobody catches it,
    is the part of it that lies in the user's own files.

    Args:
      trainer: the `Trainer`, after its shutdown.
      callbacks: the group of all callbacks, None if there is none yet.
      verdict: what the trainer will raise; None if the run came to its end.
    """
    try:
        if isinstance(verdict, Exception):
            shorten_uncaught()
            _explain(trainer, callbacks, verdict)
        _log_model(trainer, callbacks, verdict)
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


def _log_model(trainer: Any, callbacks: Any, verdict: Optional[BaseException]) -> None:
    saver = trainer.state_saver
    if saver is None or saver.last_path is None or not trainer.is_chief:
        return
    commands = dict(trainer.config.commands)
    resume = commands.pop(RESUME, None)
    lines = [_where(saver.last_path, verdict)]
    lines += [f"The best is {path} ({why})." for path, why in best_kept(callbacks.cbs)]
    lines += _how_to_resume(resume, trainer.config.resume, verdict is None)
    lines += [f"To {purpose}: {command}" for purpose, command in commands.items()]
    for line in lines:
        logger.info(line.replace(MODEL, shlex.quote(saver.last_path)))


def _where(path: str, verdict: Optional[BaseException]) -> str:
    if verdict is None:
        return f"The model is {path}."
    if isinstance(verdict, TrainingInterrupted):
        return f"The run is saved in {path}."
    return f"The last save before the failure is {path}."


def _how_to_resume(command: Optional[str], policy: str, finished: bool) -> List[str]:
    purpose = "To train longer, with more epochs" if finished else "To resume"
    if command is not None:
        return [f"{purpose}: {command}"]
    if finished:
        return []
    if policy in ("auto", "must"):
        return [f"{purpose}: start the program again, which has resume={policy!r}."]
    return [f'{purpose}: start the program with TrainConfig(resume="auto") and this log directory.']
