#!/usr/bin/env python
"""Draws how the scores of a training went, beside those of a player who knows nothing.

    python plot_scores.py train_log/DQN-breakout --rom breakout.bin --out scores.svg

Needs matplotlib (`pip install tensorpack[plot]`).
"""

import argparse
import json
import os
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tensorpack.RL import Player
from tensorpack.utils import get_rng, get_tqdm, logger

__all__ = ["Scores", "draw", "play_at_random", "read_scores"]

HISTORY = 4  # frames that make one state, as in DQN.py
GAMES_AT_ONCE = 8
# Title of a curve, its name in stats.json, and how it is drawn.
CURVES = [
    ("best game of an evaluation", "max_score", {"color": "tab:green", "linestyle": ":"}),
    ("mean of an evaluation", "mean_score", {"color": "tab:green", "marker": "o"}),
    ("mean while learning", "expreplay/mean_score", {"color": "tab:blue"}),
]


class Scores(NamedTuple):
    """One curve: numbers of updates, and the score that was reached after each."""

    steps: List[int]
    values: List[float]


def read_scores(directory: str) -> Dict[str, Scores]:
    """Returns the curves in the `stats.json` of a log directory, by their names in it.

    Raises:
      ValueError: there is no such file, or not one score is in it.
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
            f"{path} has {len(epochs)} epochs and no scores: let the run go on until games have "
            "ended in an epoch, or an evaluation is over."
        )
    return curves


def play_at_random(player: Player, games: int, seed: int = 0) -> List[float]:
    """Returns the scores of whole games in which all actions are left to chance."""
    from common import play_n_episodes

    def no_network(*states: Any) -> Any:
        raise RuntimeError("A player at random asks no network.")

    with get_tqdm(total=games) as bar:
        return play_n_episodes(
            player,
            no_network,
            games,
            HISTORY,
            epsilon=1.0,
            rng=get_rng(),
            seed=seed,
            on_tick=lambda _, ended: bar.update(ended),
        )


def draw(path: str, curves: Dict[str, Scores], chance: Sequence[float], title: str) -> None:
    """Writes the picture; the extension says in which format.

    Args:
      path: of the picture.
      curves: as `read_scores` returns them.
      chance: scores of games at random; may be empty.
      title: above the picture.

    Raises:
      ImportError: matplotlib is not installed.
      ValueError: it does not write such pictures.
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
    axes.set_ylim(bottom=0 if _all_positive(curves) else None)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def _all_positive(curves: Dict[str, Scores]) -> bool:
    return min(min(each.values) for each in curves.values()) >= 0


def parse(argv: Optional[Sequence[str]] = None) -> Tuple[argparse.ArgumentParser, Any]:
    """Returns the parser and what it made of a command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logdir", help="the log directory of the run")
    parser.add_argument("--out", default="scores.svg", help="the picture: .svg, .png or .pdf")
    parser.add_argument(
        "--rom", metavar="GAME.bin", help="also play this game at random, for comparison"
    )
    parser.add_argument("--games", type=int, default=50, help="how many games at random")
    parser.add_argument("--title", help="above the picture (default: name of the log directory)")
    return parser, parser.parse_args(argv)


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Does what the command line says.

    Raises:
      SystemExit: with code 2 where the command line is wrong.
    """
    parser, args = parse(argv)
    chance: List[float] = []
    try:
        curves = read_scores(args.logdir)
        if args.rom is not None:
            import DQN

            from tensorpack.RL import find_rom

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
