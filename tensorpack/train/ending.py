"""What a run says when it is over: where its model is, and what can be done next."""

import shlex
from typing import Any, Dict, List, Mapping, Optional

from tensorpack.utils import logger

from .signals import TrainingInterrupted

__all__ = ["MODEL", "RESUME", "check_commands", "log_ending"]

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


def log_ending(trainer: Any, verdict: Optional[BaseException]) -> None:
    """Logs where the last checkpoint is and what can be done with it; nothing if there is none.

    Args:
      trainer: the `Trainer`, after its shutdown.
      verdict: what it will raise; None if the run came to its end.
    """
    saver = trainer.state_saver
    if saver is None or saver.last_path is None or not trainer.is_chief:
        return
    commands = dict(trainer.config.commands)
    resume = commands.pop(RESUME, None)
    lines = [_where(saver.last_path, verdict)]
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
