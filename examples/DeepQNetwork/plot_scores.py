#!/usr/bin/env python
"""Draws the scores of a training over its updates, beside the score of random play.

    python plot_scores.py train_log/DQN-breakout --rom breakout.bin --out scores.svg

Needs matplotlib (`pip install tensorpack[plot]`).
"""

import argparse
import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import DQN
import numpy as np

from tensorpack.RL import Player, find_rom
from tensorpack.utils import get_rng, get_tqdm, logger

__all__ = ["Scores", "draw", "play_at_random", "read_scores"]

GAMES_AT_ONCE = 8
# Title of a curve, its name in stats.json, and how it is drawn.
CURVES = [
    ("best game of an evaluation", "max_score", {"color": "tab:green", "linestyle": ":"}),
    ("mean of an evaluation", "mean_score", {"color": "tab:green", "marker": "o"}),
    ("mean while learning", "expreplay/mean_score", {"color": "tab:blue"}),
]


class Scores(NamedTuple):
    """One curve: numbers of updates, and the score after each."""

    steps: List[int]
    values: List[float]


def read_scores(directory: str) -> Dict[str, Scores]:
    """Returns the curves in the `stats.json` of a log directory, by their names in it.

    Raises:
      ValueError: there is no such file, or it has no scores.
    """
    path = os.path.join(directory, "stats.json")
    try:
        with open(path) as file:
            epochs: List[Dict[str, Any]] = json.load(file)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} cannot be read: {error}. Give the log directory of a run."
        ) from error
    curves = {}
    for _, name, _ in CURVES:
        points = [(each["global_step"], each[name]) for each in epochs if name in each]
        if points:
            curves[name] = Scores(*(list(column) for column in zip(*points)))
    if not curves:
        raise ValueError(
            f"{path} has {len(epochs)} epochs and no scores: resume the run until a game or an "
            "evaluation has ended."
        )
    return curves


def play_at_random(player: Player, games: int, seed: int = 0) -> List[float]:
    """Returns the scores of whole games with random actions."""
    from common import play_n_episodes

    def no_network(*states: Any) -> Any:
        raise RuntimeError("Random play needs no network.")

    with get_tqdm(total=games) as bar:
        return play_n_episodes(
            player,
            no_network,
            games,
            DQN.HISTORY,
            epsilon=1.0,
            rng=get_rng(),
            seed=seed,
            on_tick=lambda _, ended: bar.update(ended),
        )


def draw(path: str, curves: Dict[str, Scores], chance: Sequence[float], title: str) -> None:
    """Writes the picture, in the format of its extension.

    Args:
      path: of the picture.
      curves: as `read_scores` returns them.
      chance: scores of random games; may be empty.
      title: above the picture.

    Raises:
      ImportError: matplotlib is not installed.
      ValueError: matplotlib does not know the format.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            f"matplotlib draws the picture: pip install matplotlib ({error})"
        ) from error

    figure = Figure(figsize=(8, 4.5))
    FigureCanvasAgg(figure)  # draws without a screen
    axes = figure.subplots()
    for label, name, style in CURVES:
        if name in curves:
            axes.plot(curves[name].steps, curves[name].values, label=label, **style)
    if chance:
        mean = float(np.mean(chance))
        axes.axhline(
            mean,
            color="tab:red",
            linestyle="--",
            label=f"random player ({mean:.2f}, {len(chance)} games)",
        )
    axes.set(xlabel="updates", ylabel="score of a game", title=title)
    axes.set_xlim(left=0)
    lowest = min(min(each.values) for each in curves.values())
    axes.set_ylim(bottom=0 if lowest >= 0 else None)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def parse(argv: Optional[Sequence[str]] = None) -> Tuple[argparse.ArgumentParser, Any]:
    """Returns the parser and the flags of a command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logdir", help="the log directory of the run")
    parser.add_argument("--out", default="scores.svg", help="the picture: .svg, .png or .pdf")
    parser.add_argument(
        "--rom", metavar="GAME.bin", help="also draw the mean score of random play of this game"
    )
    parser.add_argument("--games", type=int, default=50, help="number of random games")
    parser.add_argument("--title", help="above the picture (default: name of the log directory)")
    return parser, parser.parse_args(argv)


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Draws the picture that the command line asks for.

    Raises:
      SystemExit: with code 2 where the command line is wrong.
    """
    parser, args = parse(argv)
    chance: List[float] = []
    try:
        curves = read_scores(args.logdir)
        if args.rom is not None:
            games = min(args.games, GAMES_AT_ONCE)
            with DQN.get_eval_player(find_rom(args.rom), games, seed=0) as player:
                chance = play_at_random(player, args.games)
            logger.info(f"Random player: mean {np.mean(chance):.2f}, best {max(chance):g}")
        title = args.title or os.path.basename(os.path.normpath(args.logdir))
        draw(args.out, curves, chance, title)
    except (ImportError, OSError, ValueError) as error:
        parser.error(str(error))
    logger.info(f"{args.out} is drawn.")


if __name__ == "__main__":
    main()
