"""Flags that the examples on games have in common: the task, its files, the run to resume.

`add_task` puts them into a parser, `check_task` checks what was parsed.
"""

import argparse
import os
from typing import Callable, Optional

from tensorpack.utils._nearest import did_you_mean_file

__all__ = [
    "POLICIES",
    "PRECISIONS",
    "TASKS",
    "add_computing",
    "add_task",
    "at_least",
    "check_task",
    "default_logdir",
    "number",
    "positive",
    "probability",
    "switch",
]

POLICIES = ("never", "auto", "must")
PRECISIONS = ("fp32", "bf16", "fp16")
TASKS = ("train", "play", "eval")


def add_task(group: "argparse._ArgumentGroup", name: str) -> None:
    """Adds the flags of the task: what to do with which game, model and directory.

    Args:
      group: of a parser.
      name: of the example, with which the name of its log directory begins.
    """
    add = group.add_argument
    add(
        "--rom",
        required=True,
        metavar="GAME.bin",
        help="the game: a path, or a file name in $TENSORPACK_DATASET/atari_rom/ or in ale-py",
    )
    add("--task", choices=TASKS, default="train", help="default: train")
    add(
        "--load",
        metavar="MODEL",
        help="load the weights of a checkpoint, a log directory or an .npz file; a training starts "
        "a new run with them",
    )
    add(
        "--resume",
        default="never",
        metavar="|".join((*POLICIES, "PATH")),
        help="continue a run exactly: auto resumes the run in the log directory if there is one, "
        "must is an error if it cannot be resumed exactly, PATH resumes the run in another log "
        "directory, or from a checkpoint in it, and writes to that directory (default: never)",
    )
    add(
        "--video",
        metavar="FILE.mp4",
        help="write the game of --task play to a file (default: show it in a window, or without a "
        "screen write LOGDIR/play.mp4)",
    )
    add(
        "--logdir",
        metavar="DIR",
        help=f"directory for the log, the summaries and the models (default: train_log/{name}-GAME;"
        " with --resume PATH: the directory of PATH)",
    )


def add_computing(group: "argparse._ArgumentGroup") -> None:
    """Adds the seed and the precision."""
    add = group.add_argument
    add("--seed", type=at_least(0), metavar="N", help="seed of all random streams")
    add(
        "--precision",
        choices=PRECISIONS,
        default="fp32",
        help="bf16 computes convolutions and matrix products in bfloat16: faster on CPUs that have "
        "instructions for it, with other rounding; needs TensorFlow 2 and no GPU; fp16 is float16, "
        "for GPUs of compute capability 7.0; models stay float32 (default: fp32)",
    )


def number(group: "argparse._ArgumentGroup", flag: str, default: int, help: str) -> None:
    """Adds a flag that takes a whole number of at least 1, and says its default."""
    group.add_argument(
        flag, type=at_least(1), default=default, metavar="N", help=f"{help} (default: {default})"
    )


def switch(group: "argparse._ArgumentGroup", flag: str, default: Optional[bool], help: str) -> None:
    """Adds a flag, and the same with "no-", which turns it off; says the default unless None."""
    known = {None: "", True: " (default: yes)", False: " (default: no)"}[default]
    name = flag[2:].replace("-", "_")
    group.add_argument(flag, action="store_true", dest=name, help=help + known, default=default)
    group.add_argument(
        f"--no-{flag[2:]}", action="store_false", dest=name, help=f"not {flag}", default=default
    )


def at_least(least: int) -> Callable[[str], int]:
    """Returns a type for `add_argument`: whole numbers from `least` on."""

    def convert(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(
                f"must be a whole number of at least {least}, got {text!r}"
            )
        return value

    return convert


def probability(text: str) -> float:
    """A type for `add_argument`: numbers in [0, 1]."""
    return _real(text, "a number from 0 to 1", lambda value: 0 <= value <= 1)


def positive(text: str) -> float:
    """A type for `add_argument`: numbers greater than 0."""
    return _real(text, "a number greater than 0", lambda value: 0 < value < float("inf"))


def _real(text: str, needed: str, valid: Callable[[float], bool]) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not valid(value):
        raise argparse.ArgumentTypeError(f"must be {needed}, got {text!r}")
    return value


def check_task(parser: argparse.ArgumentParser, args: argparse.Namespace, name: str) -> None:
    """Checks the flags of `add_task`, and sets the log directory if no flag names it.

    Args:
      parser: prints the error.
      args: what it has parsed.
      name: as for `add_task`.

    Raises:
      SystemExit: with code 2 if a flag is wrong.
    """
    if args.task != "train" and args.load is None:
        parser.error(f"--task {args.task} needs a model: --load train_log/.../model-NNN")
    if args.load is not None and not _is_model(args.load):
        parser.error(
            f"--load {args.load}: there is no such checkpoint, .npz file or log directory."
            f"{_nearest(args.load)}"
        )
    _check_resume(parser, args)
    if args.logdir is None:
        args.logdir = default_logdir(args, name)


def default_logdir(args: argparse.Namespace, name: str) -> str:
    """Returns the log directory of a run without `--logdir`."""
    game = os.path.splitext(os.path.basename(args.rom))[0]
    return os.path.join("train_log", f"{name}-{game}")


def _check_resume(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    resume = args.resume
    if resume == "never":
        return
    if args.task != "train":
        parser.error(f"--resume is for --task train; --task {args.task} loads its model by --load")
    if args.load is not None:
        parser.error(
            "--resume and --load exclude each other: --resume continues a run with all of its "
            "state (weights, optimizer, replay memory, games, random streams, epoch); --load "
            "starts a new run with the weights alone"
        )
    if resume in POLICIES:
        return
    if not _is_model(resume):
        parser.error(
            f"--resume {resume}: it must be one of {', '.join(POLICIES)}, or an existing log "
            f"directory or checkpoint.{_nearest(resume)}"
        )
    directory = resume if os.path.isdir(resume) else os.path.dirname(resume) or "."
    if args.logdir is None:
        args.logdir = directory
    elif os.path.realpath(args.logdir) != os.path.realpath(directory):
        parser.error(
            f"--resume {resume} writes to {directory}, so --logdir {args.logdir} is not possible: "
            f"leave it out. To keep {directory} unchanged, copy it and resume the copy; to start "
            "a new run with its weights, use --load"
        )


def _nearest(path: str) -> str:
    return did_you_mean_file(path, ".index") or did_you_mean_file(path)


def _is_model(path: str) -> bool:
    return os.path.exists(path) or os.path.exists(path + ".index")
