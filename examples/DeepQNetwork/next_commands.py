"""The commands that a run names when it ends: to resume it, and to use its model."""

import argparse
import os
import shlex
import shutil
import sys
from typing import Any, Collection, Dict, List, Optional

__all__ = ["next_commands", "shortest"]

_MODEL = "{model}"  # the trainer puts the path of the last checkpoint there
_NOT_AGAIN = {"help", "rom", "task", "load", "resume", "logdir", "video"}


def next_commands(
    script: str,
    parser: argparse.ArgumentParser,
    args: argparse.Namespace,
    needed: Collection[str],
    logdir: Optional[str],
) -> Dict[str, str]:
    """Returns `commands` of a `TrainConfig` for a program with the flags of `task_flags`.

    Only flags are written out whose values are not the defaults.

    Args:
      script: path of the program.
      parser: has the defaults, those of a preset too.
      args: what it has parsed.
      needed: titles of the groups of flags that an evaluation must have as the training had them.
      logdir: the log directory of the run; None if it is the default.
    """
    program = [_interpreter(), shortest(script), "--rom", args.rom]
    groups = {each.title: each._group_actions for each in parser._action_groups}
    same = _flags(parser, args, [each for title in groups for each in groups[title]])
    of_model = _flags(
        parser,
        args,
        [
            each
            for title in groups
            for each in groups[title]
            if title in needed or each.dest == "preset"  # which has defaults of all groups
        ],
    )
    where = [] if logdir is None else ["--logdir", logdir]
    resume = [*program, *same, *where, "--resume", "auto"]
    commands = {"resume": "the same command with --resume auto, for the whole group"}
    if not getattr(args, "actors", False):
        commands["resume"] = _join(resume)
    for purpose, task in [("evaluate it", "eval"), ("watch it play", "play")]:
        commands[purpose] = f"{_join([*program, *of_model, '--task', task, '--load'])} {_MODEL}"
    return commands


def _flags(
    parser: argparse.ArgumentParser, args: argparse.Namespace, actions: List[Any]
) -> List[str]:
    """Returns those of these flags whose values are not the defaults, with the values."""
    words = []
    for action in actions:
        value = getattr(args, action.dest, None)
        if action.dest in _NOT_AGAIN or value == parser.get_default(action.dest):
            continue
        if action.nargs == 0:
            words += [action.option_strings[0]] if value == action.const else []
        else:
            words += [action.option_strings[0], str(value)]
    return words


def _interpreter() -> str:
    """Returns how the Python of this process is called: `python`, or its path."""
    found = shutil.which("python")
    return "python" if found == sys.executable else shortest(sys.executable)


def shortest(path: str) -> str:
    """Returns a path as seen from the working directory, if it is below that."""
    relative = os.path.relpath(path)
    return os.path.abspath(path) if relative.startswith(os.pardir) else relative


def _join(words: List[str]) -> str:
    return " ".join(shlex.quote(each) for each in words)
