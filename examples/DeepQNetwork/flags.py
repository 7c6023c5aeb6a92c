"""The command line of DQN.py: its flags with their units, and the checks that need no machine."""

import argparse
import os
from typing import Dict, Optional, Sequence

from algorithm_flags import add_algorithm, algorithm_of
from games import add_games
from next_commands import next_commands, shortest
from presets import PRESETS
from task_flags import (
    add_computing,
    add_task,
    at_least,
    check_task,
    default_logdir,
    number,
    positive,
    probability,
)

__all__ = ["commands_of", "make_parser", "parse"]

NAME = "DQN"  # of the example, in the names of log directories


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser; imports nothing that is slow."""
    parser = argparse.ArgumentParser(
        prog="DQN.py",
        description="Trains a deep Q network on an Atari game, plays with it, or evaluates it.",
    )
    add_task(parser.add_argument_group("task"), NAME)
    _add_learning(parser.add_argument_group("learning"))
    add_algorithm(parser.add_argument_group("algorithm"))
    add_games(parser.add_argument_group("games"))
    _add_schedule(parser.add_argument_group("schedule"))
    _add_computing(parser.add_argument_group("computing"))
    return parser


def parse(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """Parses and checks a command line, that of the process by default.

    Flags that are not given have the value of the preset. `algorithm` is the `Algorithm` of the
    flags.

    Raises:
      SystemExit: with code 2 if a flag is wrong, 0 after `--help`.
    """
    parser = make_parser()
    parser.set_defaults(**PRESETS[parser.parse_args(argv).preset])
    args = parser.parse_args(argv)
    try:
        args.algorithm = algorithm_of(args)
    except ValueError as error:
        parser.error(str(error))
    if args.eval_video and args.task != "train":
        parser.error("--eval-video is for --task train; --task play writes a video of a game")
    if args.report and args.task != "train":
        parser.error("--report is for --task train; for a page of a run: tensorpack report LOGDIR")
    if args.task == "train":
        if args.final_exploration is not None and args.exploration_steps is None:
            parser.error("--final-exploration needs --exploration-steps")
        memory, filled = args.memory_size, args.init_memory_size
        if filled > memory:
            parser.error(f"--init-memory-size {filled} is more than --memory-size {memory}")
        batch, towers = args.batch_size, args.towers
        if batch % towers:
            parser.error(f"--batch-size {batch} is not a multiple of --towers {towers}")
    check_task(parser, args, NAME)
    _check_deterministic(parser, args)
    _check_actors(parser, args)
    return args


def commands_of(args: argparse.Namespace, logdir: Optional[str]) -> Dict[str, str]:
    """Returns the commands that are of use after a run, see `next_commands`.

    Args:
      args: the flags of the run.
      logdir: its log directory, which may be a numbered one.
    """
    parser = make_parser()
    parser.set_defaults(**PRESETS[args.preset])
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), parser.prog)
    where = None if logdir is None else shortest(logdir)
    where = None if where == default_logdir(args, NAME) else where
    return next_commands(script, parser, args, ("algorithm", "games"), where)


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


def _add_computing(group: "argparse._ArgumentGroup") -> None:
    add = group.add_argument
    add(
        "--gpu",
        metavar="IDS",
        help="GPUs to use, such as 0 or 0,1 (sets CUDA_VISIBLE_DEVICES), -1 for none; the second "
        "one plays (default: all)",
    )
    number(group, "--towers", 1, "GPUs to train on, each with an equal part of a batch")
    add_computing(group)
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
    number(group, "--weights-every", 200, "steps between two updates of the weights of --actors")
    add(
        "--key",
        metavar="FILE",
        help="the key of tensorpack.dataflow.make_remote_key, the same on all machines; needed "
        "for --actors on several",
    )
    add(
        "--xla",
        action="store_true",
        help="compile the network by XLA, which takes seconds for each shape of a batch; on CPUs "
        "slower than without it with TensorFlow 2, a little faster with TensorFlow 1",
    )


def _add_learning(group: "argparse._ArgumentGroup") -> None:
    add = group.add_argument
    add(
        "--preset",
        choices=list(PRESETS),
        default="2017",
        help="settings of a publication, see README.md; a flag that is given too overrides them "
        "(default: 2017, whose defaults are listed here)",
    )
    number(group, "--num-players", 1, "games played at once in training, see README.md")
    number(group, "--batch-size", 64, "transitions in a batch")
    number(group, "--update-freq", 4, "transitions played for each batch, by all players together")
    number(group, "--memory-size", 10**6, "transitions in the replay memory (7 kB each)")
    number(group, "--init-memory-size", 50000, "transitions played before the training begins")
    number(group, "--target-sync", 2500, "steps between two updates of the target network")


def _add_schedule(group: "argparse._ArgumentGroup") -> None:
    add = group.add_argument
    number(group, "--steps-per-epoch", 25000, "steps (batches) in an epoch")
    number(group, "--max-epoch", 1000, "epochs to train for")
    number(group, "--eval-every", 10, "epochs between two evaluations")
    number(group, "--eval-episodes", 50, "whole games in an evaluation, and in --task eval")
    add(
        "--eval-video",
        action="store_true",
        help="after each evaluation, write a video of one of its games, with the values of the "
        "actions, to LOGDIR/videos/",
    )
    add(
        "--report",
        action="store_true",
        help="when the training is over, write LOGDIR/report.html: its result, curves, time, log",
    )
    add(
        "--learning-rate",
        type=positive,
        metavar="R",
        help="constant learning rate (default: 1e-3, 4e-4 after epoch 60, 2e-4 after epoch 100)",
    )
    add(
        "--exploration-steps",
        type=at_least(1),
        metavar="N",
        help="actions, from the first update on, over which the probability of a random action "
        "falls from 1 to --final-exploration, linearly (default: to 0.1 over 10 epochs, to 0.01 "
        "over 310 more)",
    )
    add(
        "--final-exploration",
        type=probability,
        metavar="P",
        help="probability of a random action after --exploration-steps (default: 0.01)",
    )
    number(group, "--random-repeat", 1, "how often a random action is done in succession, at most")
