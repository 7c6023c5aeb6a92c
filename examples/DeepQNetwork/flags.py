"""The command line of DQN.py: every number of the experiment that may be changed, with its unit."""

import argparse
import os
from typing import Any, Callable, Optional, Sequence

__all__ = ["ALGORITHMS", "POLICIES", "PRECISIONS", "TASKS", "make_parser", "parse"]

ALGORITHMS = ("Double", "DQN", "Dueling")
POLICIES = ("never", "auto", "must")
PRECISIONS = ("fp32", "bf16")
TASKS = ("train", "play", "eval")


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser. Nothing that is slow to import is needed for it."""
    parser = argparse.ArgumentParser(
        prog="DQN.py",
        description="Trains a deep Q network on an Atari game, plays with it, or evaluates it.",
    )
    _add_what(parser)
    _add_learning(parser.add_argument_group("learning"))
    _add_schedule(parser.add_argument_group("schedule"))
    return parser


def parse(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """Parses and checks a command line, that of the process by default.

    Raises:
      SystemExit: with code 2 where something is wrong with it, 0 after `--help`.
    """
    parser = make_parser()
    args = parser.parse_args(argv)
    if args.init_memory_size > args.memory_size:
        parser.error(
            f"--init-memory-size {args.init_memory_size} is more than --memory-size "
            f"{args.memory_size}"
        )
    if args.task != "train" and args.load is None:
        parser.error(f"--task {args.task} needs a model: --load train_log/.../model-NNN")
    if args.load is not None and not _is_model(args.load):
        parser.error(f"--load {args.load}: there is no such checkpoint, .npz file or log directory")
    _check_resume(parser, args)
    _check_deterministic(parser, args)
    if args.logdir is None:
        name = os.path.splitext(os.path.basename(args.rom))[0]
        args.logdir = os.path.join("train_log", f"DQN-{name}")
    return args


def _check_resume(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    resume = args.resume
    if resume == "never":
        return
    if args.task != "train":
        parser.error(f"--resume is for --task train; --task {args.task} takes its model by --load")
    if args.load is not None:
        parser.error(
            "--resume and --load exclude each other: --resume goes on with a run and takes all of "
            "it (weights, optimizer, replay memory, games, random streams, epoch); --load takes "
            "the weights alone and begins a new run with them"
        )
    if resume in POLICIES:
        return
    if not _is_model(resume):
        parser.error(
            f"--resume {resume}: it is one of {', '.join(POLICIES)}, or a log directory or a "
            "checkpoint that is there"
        )
    directory = resume if os.path.isdir(resume) else os.path.dirname(resume) or "."
    if args.logdir is None:
        args.logdir = directory
    elif os.path.realpath(args.logdir) != os.path.realpath(directory):
        parser.error(
            f"--resume {resume} goes on in {directory}, where it writes to, so --logdir "
            f"{args.logdir} says something else: leave it out. To keep {directory} as it is, copy "
            "it and resume the copy; to begin another run with its weights, use --load"
        )


def _check_deterministic(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if not args.deterministic:
        return
    if args.task != "train":
        parser.error(f"--deterministic is for --task train; --task {args.task} needs only --seed")
    if args.seed is None:
        parser.error("--deterministic needs the seed that everything follows from: --seed N")
    if args.num_players != 1:
        parser.error(
            f"--deterministic plays one game at a time: --num-players 1, got {args.num_players}"
        )
    if args.xla:
        parser.error(
            "--deterministic and --xla exclude each other: what XLA compiles depends on what was "
            "computed before, so a resumed run may compute with other code"
        )


def _add_what(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--rom",
        required=True,
        metavar="GAME.bin",
        help="the game: a path, or the name of a file in $TENSORPACK_DATASET/atari_rom/ or among "
        "those that ale-py brings along",
    )
    add("--task", choices=TASKS, default="train", help="what to do (default: train)")
    add("--algo", choices=ALGORITHMS, default="Double", help="the algorithm (default: Double)")
    add(
        "--load",
        metavar="MODEL",
        help="where to take the weights from: a checkpoint, a log directory, or an .npz file; "
        "training begins a new run with them",
    )
    add(
        "--resume",
        default="never",
        metavar="|".join((*POLICIES, "PATH")),
        help="go on with a run as if it had never ended: auto goes on with the one in the log "
        "directory if there is one, must ends with an error where it cannot do so exactly, PATH "
        "goes on with the run in another log directory, or from a checkpoint in it, and writes to "
        "that directory (default: never)",
    )
    add(
        "--video",
        metavar="FILE.mp4",
        help="where --task play writes the game to; without it, it is shown in a window, or where "
        "there is no screen, written to LOGDIR/play.mp4",
    )
    _add_how(add)


def _add_how(add: Callable[..., Any]) -> None:
    add(
        "--gpu",
        metavar="IDS",
        help="the GPUs to use, such as 0 or 0,1 (sets CUDA_VISIBLE_DEVICES); -1 for none. Of two, "
        "the second one acts (default: all)",
    )
    add(
        "--logdir",
        metavar="DIR",
        help="where the log, the summaries and the models go (default: train_log/DQN-GAME; with "
        "--resume PATH: the directory of PATH, and no other)",
    )
    add("--seed", type=_at_least(0), metavar="N", help="makes all random streams reproducible")
    add(
        "--deterministic",
        action="store_true",
        help="play and train in turns, so that the same command line always gives the same "
        "weights, also if the run was ended and resumed; slower; needs --seed and --num-players 1",
    )
    _add_computing(add)


def _add_computing(add: Callable[..., Any]) -> None:
    add(
        "--precision",
        choices=PRECISIONS,
        default="fp32",
        help="bf16 computes convolutions and matrix products in bfloat16: faster on CPUs that have "
        "instructions for it, but not the same numbers; needs TensorFlow 2 and no GPU; models stay "
        "float32 (default: fp32)",
    )
    add(
        "--xla",
        action="store_true",
        help="let XLA compile the network, which takes seconds for each shape of a batch; on CPUs "
        "slower than without it with TensorFlow 2, a little faster with TensorFlow 1",
    )


def _add_learning(group: "argparse._ArgumentGroup") -> None:
    _number(group, "--num-players", 1, "games played at once, for training; more: see README.md")
    _number(group, "--batch-size", 64, "transitions in a batch")
    _number(group, "--update-freq", 4, "transitions played for each batch, by all players together")
    _number(group, "--memory-size", 10**6, "transitions kept in the replay memory (7 kB each)")
    _number(group, "--init-memory-size", 50000, "transitions played before the training begins")
    _number(group, "--target-sync", 2500, "steps between two updates of the target network")


def _add_schedule(group: "argparse._ArgumentGroup") -> None:
    _number(group, "--steps-per-epoch", 25000, "steps (batches) in an epoch")
    _number(group, "--max-epoch", 1000, "epochs to train for")
    _number(group, "--eval-every", 10, "epochs between two evaluations")
    _number(group, "--eval-episodes", 50, "whole games in an evaluation, and in --task eval")


def _number(group: "argparse._ArgumentGroup", flag: str, default: int, help: str) -> None:
    group.add_argument(
        flag, type=_at_least(1), default=default, metavar="N", help=f"{help} (default: {default})"
    )


def _at_least(least: int) -> Callable[[str], int]:
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


def _is_model(path: str) -> bool:
    return os.path.exists(path) or os.path.exists(path + ".index")
