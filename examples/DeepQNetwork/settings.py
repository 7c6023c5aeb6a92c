"""What defines a run, from its flags: its schedules, and the rules by which runs compare."""

import argparse
import textwrap
from typing import Any, Dict, Mapping

import algorithm_flags
import games

from tensorpack.utils import logger

__all__ = ["exploration", "learning_rate", "log_rules", "rules_of"]

# Schedules of 2017: (epoch, value after it). Until then the learning rate is the algorithm's.
LEARNING_RATES = [(60, 4e-4), (100, 2e-4)]
EXPLORATION = [(0, 1.0), (10, 0.1), (320, 0.01)]  # linear in between
FINAL_EXPLORATION = 0.01

_BY_EPOCHS = "by epochs"


def learning_rate(args: argparse.Namespace) -> Dict[str, Any]:
    """Returns the arguments of a `ScheduledHyperParamSetter`."""
    rate = args.learning_rate
    return {"schedule": LEARNING_RATES if rate is None else [(0, rate)]}


def exploration(args: argparse.Namespace) -> Dict[str, Any]:
    """Returns the arguments of a `ScheduledHyperParamSetter`.

    A number of agent steps is turned into updates: from the first update on, each of them has
    `update_freq` agent steps.
    """
    if args.exploration_steps is None:
        return {"schedule": EXPLORATION, "interp": "linear"}
    updates = max(1, round(args.exploration_steps / args.update_freq))
    points = [(0, 1.0), (updates, _final_exploration(args))]
    return {"schedule": points, "interp": "linear", "step_based": True}


def rules_of(args: argparse.Namespace) -> Dict[str, Any]:
    """Returns what decides how the scores of two runs compare: names of settings to their values.

    They are saved with the run and compared when it is resumed, see `checks.check_rules`.
    """
    by_steps = args.exploration_steps is not None
    return {
        **algorithm_flags.rules_of(args.algorithm),
        "learning_rate": _BY_EPOCHS if args.learning_rate is None else args.learning_rate,
        "exploration_steps": args.exploration_steps if by_steps else _BY_EPOCHS,
        "final_exploration": _final_exploration(args),
        "random_repeat": args.random_repeat,
        "target_sync": args.target_sync,
        "batch_size": args.batch_size,
        "update_frequency": args.update_freq,
        "memory_size": args.memory_size,
        "init_memory_size": args.init_memory_size,
        **games.rules_of(args),
    }


def log_rules(rules: Mapping[str, Any]) -> None:
    """Logs the rules, a few lines of them."""
    words = ", ".join(f"{name}={value}".replace(" ", "_") for name, value in rules.items())
    logger.info("Settings: \n" + textwrap.fill(words, 100, break_long_words=False))


def _final_exploration(args: argparse.Namespace) -> float:
    return FINAL_EXPLORATION if args.final_exploration is None else args.final_exploration
