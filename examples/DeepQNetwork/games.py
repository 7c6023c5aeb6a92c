"""The games: their flags, which decide how scores compare, and the players that have them.

`add_games` puts the flags into a parser, `get_player` makes games from what was parsed. Training
and evaluation play the same games.
"""

import argparse
from typing import Any, Dict, Optional

from task_flags import at_least, probability, switch

from tensorpack.RL import AtariPlayers, LimitIdle
from tensorpack.utils import get_rng

__all__ = ["FRAME_SKIP", "add_games", "get_player", "rules_of"]

FRAME_SKIP = 4  # emulator frames for each action
_RULES = (
    *("sticky", "life_loss_ends", "noop_max", "fire_on_reset", "max_frames"),
    *("eval_epsilon", "idle_frames"),
)


def add_games(group: "argparse._ArgumentGroup") -> None:
    """Adds the flags of the games and of how they are scored."""
    add = group.add_argument
    add(
        "--sticky",
        type=probability,
        default=0.0,
        metavar="P",
        help="probability with which a frame repeats the action of the one before, whatever the "
        "agent chose; 0.25 in most figures published since 2018 (default: 0)",
    )
    switch(group, "--life-loss-ends", True, "a lost life ends an episode for learning")
    add(
        "--noop-max",
        type=at_least(0),
        default=30,
        metavar="N",
        help="a game begins with a random number of frames without an action, less than N; 0 for "
        "none (default: 30)",
    )
    switch(
        group,
        "--fire-on-reset",
        False,
        "press FIRE once at the start of a game and after a lost life, instead of what the agent "
        "chose; for games that wait for it",
    )
    add(
        "--max-frames",
        type=at_least(FRAME_SKIP),
        default=120000,
        metavar="N",
        help="emulator frames after which a game is cut off, in training and in evaluations; 60 "
        f"are a second, {FRAME_SKIP} an action (default: 120000)",
    )
    _add_evaluation(group)


def _add_evaluation(group: "argparse._ArgumentGroup") -> None:
    add = group.add_argument
    add(
        "--eval-epsilon",
        type=probability,
        default=0.001,
        metavar="P",
        help="probability of a random action in evaluations and in --task play (default: 0.001)",
    )
    add(
        "--idle-frames",
        type=at_least(0),
        default=3600,
        metavar="N",
        help="emulator frames after which an evaluation ends a game whose screen and score do not "
        "change; 0 for never, as in publications (default: 3600, a minute)",
    )


def get_player(
    args: argparse.Namespace,
    rom: str,
    num_envs: int,
    seed: Optional[int] = None,
    backend: str = "auto",
    evaluated: bool = False,
) -> Any:
    """Returns games with the options of the flags, see `AtariPlayers`; by default a random seed."""
    player = AtariPlayers(
        rom,
        num_envs=num_envs,
        frame_skip=FRAME_SKIP,
        seed=int(get_rng().randint(2**31)) if seed is None else seed,
        backend=backend,
        max_noops=args.noop_max,
        sticky=args.sticky,
        fire_on_reset=args.fire_on_reset,
        max_episode_actions=args.max_frames // FRAME_SKIP,
    )
    idle_actions = args.idle_frames // FRAME_SKIP
    return LimitIdle(player, idle_actions) if evaluated and idle_actions else player


def rules_of(args: argparse.Namespace) -> Dict[str, Any]:
    """Returns the values of these flags by name."""
    return {name: getattr(args, name) for name in _RULES}
