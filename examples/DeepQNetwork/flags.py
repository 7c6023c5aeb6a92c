"""The command line of DQN.py: its flags with their units, and the checks that need no machine."""

import argparse
import os
from typing import Callable, Optional, Sequence

__all__ = ["ALGORITHMS", "POLICIES", "PRECISIONS", "TASKS", "make_parser", "parse"]

ALGORITHMS = ("Double", "DQN", "Dueling")
POLICIES = ("never", "auto", "must")
PRECISIONS = ("fp32", "bf16")
TASKS = ("train", "play", "eval")


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser; imports nothing that is slow."""
    parser = argparse.ArgumentParser(
        prog="DQN.py",
        description="Trains a deep Q network on an Atari game, plays with it, or evaluates it.",
    )
    _add_task(parser.add_argument_group("task"))
    _add_learning(parser.add_argument_group("learning"))
    _add_schedule(parser.add_argument_group("schedule"))
    _add_computing(parser.add_argument_group("computing"))
    return parser


def parse(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """Parses and checks a command line, that of the process by default.

    Raises:
      SystemExit: with code 2 if a flag is wrong, 0 after `--help`.
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
    _check_actors(parser, args)
    if args.batch_size % args.towers:
        parser.error(f"--batch-size {args.batch_size} is not a multiple of --towers {args.towers}")
    if args.logdir is None:
        name = os.path.splitext(os.path.basename(args.rom))[0]
        args.logdir = os.path.join("train_log", f"DQN-{name}")
    return args


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
            "directory or checkpoint"
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


def _check_deterministic(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if not args.deterministic:
        return
    if args.task != "train":
        parser.error(f"--deterministic is for --task train; --task {args.task} needs only --seed")
    if args.seed is None:
        parser.error("--deterministic needs a seed: --seed N")
    if args.num_players != 1:
        parser.error(
            f"--deterministic plays one game at a time: --num-players 1, got {args.num_players}"
        )
    if args.xla:
        parser.error(
            "--deterministic and --xla exclude each other: XLA compiles depending on earlier "
            "computations, so a resumed run may use other code"
        )


def _check_actors(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if not args.actors:
        if args.key is not None:
            parser.error("--key is for --actors on other machines")
        return
    if args.task != "train":
        parser.error(f"--actors is for --task train; --task {args.task} plays in one process")
    if args.deterministic:
        parser.error(
            "--deterministic and --actors exclude each other: in which order the games of several "
            "processes come, and with which weights they are played, differs from run to run"
        )
    if args.resume == "must":
        parser.error(
            "--resume must and --actors exclude each other: the games of actors are not saved, so "
            "such a run cannot be resumed exactly. With --resume auto new games begin, and "
            "everything else is restored"
        )
    if args.key is not None and not os.path.exists(args.key):
        parser.error(
            f"--key {args.key}: there is no such file. Make it, once, by "
            f"tensorpack.dataflow.make_remote_key({args.key!r}), and copy it to all machines"
        )


def _add_task(group: "argparse._ArgumentGroup") -> None:
    add = group.add_argument
    add(
        "--rom",
        required=True,
        metavar="GAME.bin",
        help="the game: a path, or a file name in $TENSORPACK_DATASET/atari_rom/ or in ale-py",
    )
    add("--task", choices=TASKS, default="train", help="default: train")
    add("--algo", choices=ALGORITHMS, default="Double", help="the algorithm (default: Double)")
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
        help="directory for the log, the summaries and the models (default: train_log/DQN-GAME; "
        "with --resume PATH: the directory of PATH)",
    )


def _add_computing(group: "argparse._ArgumentGroup") -> None:
    add = group.add_argument
    add(
        "--gpu",
        metavar="IDS",
        help="GPUs to use, such as 0 or 0,1 (sets CUDA_VISIBLE_DEVICES), -1 for none; the second "
        "one plays (default: all)",
    )
    _number(group, "--towers", 1, "GPUs to train on, each with an equal part of a batch")
    add("--seed", type=_at_least(0), metavar="N", help="seed of all random streams")
    add(
        "--deterministic",
        action="store_true",
        help="play and train in turns, so that the same command always gives the same weights, "
        "also if the run is stopped and resumed; slower; needs --seed and --num-players 1",
    )
    add(
        "--actors",
        action="store_true",
        help="learn in one process, and play in the others: see README.md for the command that "
        "starts them; each plays --num-players games",
    )
    _number(group, "--weights-every", 200, "steps between two updates of the weights of --actors")
    add(
        "--key",
        metavar="FILE",
        help="the key of tensorpack.dataflow.make_remote_key, the same on all machines; needed "
        "for --actors on several",
    )
    add(
        "--precision",
        choices=PRECISIONS,
        default="fp32",
        help="bf16 computes convolutions and matrix products in bfloat16: faster on CPUs that have "
        "instructions for it, with other rounding; needs TensorFlow 2 and no GPU; models stay "
        "float32 (default: fp32)",
    )
    add(
        "--xla",
        action="store_true",
        help="compile the network by XLA, which takes seconds for each shape of a batch; on CPUs "
        "slower than without it with TensorFlow 2, a little faster with TensorFlow 1",
    )


def _add_learning(group: "argparse._ArgumentGroup") -> None:
    _number(group, "--num-players", 1, "games played at once in training, see README.md")
    _number(group, "--batch-size", 64, "transitions in a batch")
    _number(group, "--update-freq", 4, "transitions played for each batch, by all players together")
    _number(group, "--memory-size", 10**6, "transitions in the replay memory (7 kB each)")
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
