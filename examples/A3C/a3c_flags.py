"""The command line of a3c.py: its flags with their units, and the checks that need no machine."""

import argparse
import os
from typing import Dict, Optional, Sequence

from games import add_games
from next_commands import next_commands, shortest
from task_flags import add_computing, add_task, check_task, default_logdir, number, positive

__all__ = ["commands_of", "make_parser", "parse"]

NAME = "A3C"  # of the example, in the names of log directories


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser; imports nothing that is slow."""
    parser = argparse.ArgumentParser(
        prog="a3c.py",
        description="Trains an advantage actor-critic on an Atari game, plays with it, or "
        "evaluates it.",
    )
    add_task(parser.add_argument_group("task"), NAME)
    _add_learning(parser.add_argument_group("learning"))
    add_games(parser.add_argument_group("games"))
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
    check_task(parser, args, NAME)
    if args.deterministic:
        if args.task != "train":
            parser.error(f"--deterministic is for --task train; {args.task} needs only --seed")
        if args.seed is None:
            parser.error("--deterministic needs a seed: --seed N")
    return args


def commands_of(args: argparse.Namespace, logdir: Optional[str]) -> Dict[str, str]:
    """Returns the commands that are of use after a run; `logdir` is its log directory."""
    parser = make_parser()
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), parser.prog)
    where = None if logdir is None else shortest(logdir)
    where = None if where == default_logdir(args, NAME) else where
    return next_commands(script, parser, args, ["games"], where)


def _add_learning(group: "argparse._ArgumentGroup") -> None:
    number(group, "--num-players", 16, "games played at once in training")
    number(group, "--rollout", 5, "actions in each game between two updates")
    group.add_argument(
        "--learning-rate",
        type=positive,
        default=7e-4,
        metavar="R",
        help="learning rate of the first epoch; it falls to 0 until the last one (default: 7e-4)",
    )


def _add_schedule(group: "argparse._ArgumentGroup") -> None:
    number(group, "--steps-per-epoch", 1250, "steps (updates) in an epoch")
    number(group, "--max-epoch", 100, "epochs to train for")
    number(group, "--eval-every", 5, "epochs between two evaluations")
    number(group, "--eval-episodes", 50, "whole games in an evaluation, and in --task eval")


def _add_computing(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--gpu",
        metavar="ID",
        help="GPU to use, such as 0 (sets CUDA_VISIBLE_DEVICES), -1 for none (default: the first)",
    )
    add_computing(group)
    group.add_argument(
        "--deterministic",
        action="store_true",
        help="step all games in one thread, from which they can be saved, and compute in one, so "
        "that the same command always gives the same weights, also if the run is stopped and "
        "resumed; slower; needs --seed",
    )
