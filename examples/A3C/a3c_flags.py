"""The command line of a3c.py: its flags with their units, and the checks that need no machine."""

import argparse
import os
from typing import Dict, Optional, Sequence

from tensorpack.contrib import game_flags
from tensorpack.contrib.game_flags import COUNT, POSITIVE, Flag

NAME = "A3C"  # of the example, in the names of log directories

# fmt: off
GROUPS = {
    "task": game_flags.TASK,
    "learning": [
        Flag("num-players", COUNT, 16, "games played at once in training"),
        Flag("rollout", COUNT, 5, "actions in each game between two updates"),
        Flag("learning-rate", POSITIVE, 7e-4, "learning rate of the first epoch; it falls to 0 "
             "until the last one (default: 7e-4)"),
    ],
    "games": game_flags.GAMES,
    "schedule": [
        Flag("steps-per-epoch", COUNT, 1250, "steps (updates) in an epoch"),
        Flag("max-epoch", COUNT, 100, "epochs to train for"),
        Flag("eval-every", COUNT, 5, "epochs between two evaluations"),
        Flag("eval-episodes", COUNT, 50, "whole games in an evaluation, and in --task eval"),
    ],
    "computing": [
        Flag("gpu", "ID", None, "GPU to use, such as 0 (sets CUDA_VISIBLE_DEVICES), -1 for none "
             "(default: the first)"),
        *game_flags.SEED_AND_PRECISION,
        Flag("deterministic", bool, False, "step all games in one thread, from which they can be "
             "saved, and compute in one, so that the same command always gives the same weights, "
             "also if the run is stopped and resumed; slower; needs --seed"),
    ],
}
# fmt: on


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser; imports nothing that is slow."""
    parser = argparse.ArgumentParser(
        prog="a3c.py",
        description="Trains an advantage actor-critic on an Atari game, plays with it, or "
        "evaluates it.",
    )
    for title, group in GROUPS.items():
        game_flags.add_flags(parser.add_argument_group(title), group, NAME)
    return parser


def parse(argv: Optional[Sequence[str]] = None) -> argparse.Namespace:
    """Parses and checks a command line, that of the process by default.

    Raises:
      SystemExit: with code 2 if a flag is wrong, 0 after `--help`.
    """
    parser = make_parser()
    args = parser.parse_args(argv)
    for mistake in game_flags.task_mistakes(args):
        parser.error(mistake)
    args.logdir = game_flags.logdir_of(args, NAME)
    return args


def commands_of(args: argparse.Namespace, logdir: Optional[str]) -> Dict[str, str]:
    """Returns the commands that are of use after a run; `logdir` is its log directory."""
    parser = make_parser()
    script = os.path.join(os.path.dirname(__file__), parser.prog)
    return game_flags.next_commands(NAME, script, parser, args, ["games"], logdir)
