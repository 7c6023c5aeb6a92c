#!/usr/bin/env python
"""Draws the scores of one or several runs, beside random play and published scores.

    python plot_scores.py train_log/DQN-breakout --rom breakout.bin --out scores.svg
    python plot_scores.py fast='runs/fast-*' Double=runs/double --published breakout --table

Runs of one name are one curve: their mean, in a band from the worst to the best run. Needs
matplotlib (`pip install matplotlib`).
"""

import argparse
import glob
import json
import os
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import DQN
import flags
import numpy as np
from algorithm import PRESETS

from tensorpack.contrib.game_flags import COUNT, Flag, add_flags, get_player
from tensorpack.RL import Player, RunScores, find_rom, read_scores
from tensorpack.RL.scores import AXES, Curve, Window
from tensorpack.utils import get_rng, get_tqdm, logger
from tensorpack.utils.optional import require

GAMES_AT_ONCE = 8
AXIS_LABELS = {"steps": "agent steps", "hours": "hours", "updates": "updates"}
_COLORS = ("tab:blue", "tab:orange", "tab:green", "tab:purple", "tab:brown", "tab:pink")
_LINES = ("-", "--", "-.", ":", (0, (3, 1, 1, 1, 1, 1)))  # of published scores

Runs = Dict[str, List[RunScores]]  # by name, in the order of the command line


class Published(NamedTuple):
    """Published scores of one game."""

    windows: List[Window]
    scores: Dict[str, List[float]]  # name of an algorithm to its score in each window
    source: str


def read_published(game: str) -> Published:
    """Returns the scores of a game in `published.json`.

    Raises:
      ValueError: the file does not have the game.
    """
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "published.json")
    with open(path) as file:
        data = json.load(file)
    if game not in data["games"]:
        raise ValueError(f"{path} has no {game}, only {', '.join(sorted(data['games']))}.")
    windows = [(first, last) for first, last in data["windows"]]
    return Published(windows, data["games"][game], data["source"])


def read_runs(arguments: Sequence[str]) -> Runs:
    """Reads the runs that a command line names.

    Args:
      arguments: log directories, each with `NAME=` in front or not; a pattern such as `log/fast-*`
        stands for all directories that match. A directory that exists with "=" in its path is one.

    Raises:
      ValueError: one is not the log directory of a run.
    """
    runs: Runs = {}
    for argument in arguments:
        own, directories = os.path.basename(os.path.normpath(argument)), _directories(argument)
        if not directories:  # then "=" is not a part of a path
            name, equals, rest = argument.partition("=")
            own = name if equals else own
            directories = _directories(rest) or [rest or argument]
        for directory in directories:
            runs.setdefault(own, []).append(read_scores(directory))
    return runs


def _directories(pattern: str) -> List[str]:
    found = [pattern] if os.path.isdir(pattern) else glob.glob(pattern)
    return sorted(filter(os.path.isdir, found))


def play_at_random(player: Player, games: int, seed: int = 0) -> List[float]:
    """Returns the scores of whole games with random actions."""
    from tensorpack.contrib.games import play_n_episodes

    def no_network(*states: Any) -> Any:
        raise RuntimeError("Random play needs no network.")

    with get_tqdm(total=games, desc="Random play") as bar:
        return play_n_episodes(
            *(player, no_network, games, DQN.HISTORY, 1.0, get_rng(), seed),
            on_tick=lambda _, ended: bar.update(ended),
        )


def draw(
    path: str,
    runs: Runs,
    title: str,
    *,
    axis: str = "steps",
    window: int = 25000,
    chance: Sequence[float] = (),
    published: Optional[Published] = None,
) -> None:
    """Writes the picture, in the format of its extension.

    Args:
      path: of the picture.
      runs: what to draw; see `read_runs`.
      title: above the picture.
      axis: what the x axis shows, see `AXES`.
      window: agent steps over which the scores of the training are averaged.
      chance: scores of random games; may be empty.
      published: is drawn too; the axis must show agent steps.

    Raises:
      ImportError: matplotlib is not installed.
      ValueError: matplotlib does not know the format, or a run lacks what the axis shows.
    """
    figure = require("matplotlib.figure").Figure(figsize=(9, 5))
    require("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)  # draws without a screen
    axes = figure.subplots()
    for i, (name, group) in enumerate(runs.items()):
        _draw_band(axes, name, group, axis, window, _COLORS[i % len(_COLORS)])
    if not axes.lines:
        raise ValueError(f"No run has a score over {window} agent steps: give a smaller --window.")
    if chance:
        mean = float(np.mean(chance))
        label = f"random player ({mean:.2f}, {len(chance)} games)"
        axes.axhline(mean, color="tab:red", linestyle="--", label=label)
    if published is not None:
        _draw_published(axes, published)
    every = f"; a point of training is the mean of {window:,} agent steps"
    known = any(len(run.steps) for group in runs.values() for run in group)
    axes.set(
        xlabel=AXIS_LABELS[axis] + every * known, ylabel="score of a game", title=_plain(title)
    )
    axes.set_xlim(left=0)
    if axes.dataLim.ymin >= 0:
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, bbox_inches="tight")


def _plain(text: str) -> str:
    """A text as matplotlib shows it literally: no formula, nor a label that legends leave out."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def _draw_band(
    axes: Any, name: str, group: Sequence[RunScores], axis: str, window: int, color: str
) -> None:
    for kind, curves, style in [
        ("training", [run.training_curve(axis, window) for run in group], {}),
        ("evaluations", [run.evaluation_curve(axis) for run in group], {"marker": "o", "ls": ":"}),
    ]:
        x, y = resample(curves)
        if not len(x):
            continue
        several = f", {len(y)} runs" if len(y) > 1 else ""
        label = _plain(f"{name}: {kind}{several}")
        axes.plot(x, y.mean(0), label=label, color=color, **style)
        if several:
            axes.fill_between(x, y.min(0), y.max(0), color=color, alpha=0.2, linewidth=0)


def resample(curves: Sequence[Curve]) -> Tuple[np.ndarray, np.ndarray]:
    """Returns the points of several curves where all have values, `[n]`, and these, `[runs, n]`."""
    curves = [(x, y) for x, y in curves if x]
    if not curves:
        return np.zeros(0), np.zeros((0, 0))
    first, last = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    grid = np.unique(np.concatenate([x for x, _ in curves]))
    grid = grid[(grid >= first) & (grid <= last)]
    return grid, np.array([np.interp(grid, x, y) for x, y in curves])


def _draw_published(axes: Any, published: Published) -> None:
    """Draws each score as a line over its window."""
    for (name, scores), line in zip(published.scores.items(), _LINES):
        for i, ((first, last), score) in enumerate(zip(published.windows, scores)):
            label = _plain(name) if i == 0 else None
            axes.plot([first, last], [score] * 2, color="0.35", linestyle=line, label=label)


def make_table(runs: Runs, published: Published) -> str:
    """Returns the scores over the windows of the published ones as a table in Markdown.

    A run counts as one, however many games it has; "-" is where not all runs have a score.
    """
    rows = [
        ["mean score of training, agent steps", *(f"{a:,}-{b:,}" for a, b in published.windows)],
        ["---"] * (1 + len(published.windows)),
        *([name, *map(_score, scores)] for name, scores in published.scores.items()),
    ]
    for name, group in runs.items():
        of_runs = zip(*(run.window_means(published.windows) for run in group))
        means = [None if None in each else float(np.mean(each)) for each in of_runs]
        count = f"{len(group)} run" + "s" * (len(group) > 1)
        rows.append([f"**{name}** ({count})", *map(_score, means)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _score(value: Optional[float]) -> str:
    return "-" if value is None else f"{value:.1f}"


# fmt: off
FLAGS = [
    Flag("out", "OUT", None, "the picture: .svg, .png or .pdf (default: scores.svg; none with "
         "--table)"),
    Flag("x", tuple(sorted(AXES)), "steps", "the x axis"),
    Flag("window", COUNT, 25000, "agent steps over which scores of the training are averaged"),
    Flag("published", "GAME", None, "also draw the published scores of this game, such as breakout "
         "(published.json)"),
    Flag("table", bool, False, "print the scores over the windows of the published ones; needs "
         "--published"),
    Flag("rom", "GAME.bin", None, "also draw the mean score of random play of this game"),
    Flag("preset", tuple(PRESETS), "2017", "the options of this game, as for DQN.py"),
    Flag("games", COUNT, 50, "number of random games"),
    Flag("title", "TITLE", None, "above the picture (default: the name of the runs)"),
]
# fmt: on


def parse(argv: Optional[Sequence[str]] = None) -> Tuple[argparse.ArgumentParser, Any]:
    """Returns the parser and the flags of a command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    named = "the log directory of a run; runs with the same NAME are drawn as one curve"
    parser.add_argument("runs", nargs="+", metavar="[NAME=]LOGDIR", help=named)
    add_flags(parser, FLAGS)
    args = parser.parse_args(argv)
    if args.table and args.published is None:
        parser.error("--table needs the game: --published GAME")
    if args.x != "steps" and args.published is not None and (args.out or not args.table):
        parser.error("--published has scores over agent steps: leave out --x")
    return parser, args


def main(argv: Optional[Sequence[str]] = None) -> None:
    """Draws the picture that the command line asks for.

    Raises:
      SystemExit: with code 2 where the command line is wrong.
    """
    parser, args = parse(argv)
    chance: List[float] = []
    try:
        runs = read_runs(args.runs)
        published = None if args.published is None else read_published(args.published)
        if args.table:
            sys.stdout.write(make_table(runs, published))
            if args.out is None:
                return
        if args.rom is not None:
            games = min(args.games, GAMES_AT_ONCE)
            like = flags.parse(["--rom", args.rom, "--preset", args.preset])
            with get_player(like, find_rom(args.rom), games, seed=0) as player:
                chance = play_at_random(player, args.games)
            logger.info(f"Random player: mean {np.mean(chance):.2f}, best {max(chance):g}")
        out = args.out or "scores"
        out += "" if os.path.splitext(out)[1] else ".svg"  # matplotlib would add .png
        settings = {"axis": args.x, "window": args.window, "published": published}
        draw(out, runs, args.title or ", ".join(runs), chance=chance, **settings)
    except (ImportError, OSError, ValueError) as error:
        parser.error(str(error))
    logger.info(f"{out} is drawn.")


if __name__ == "__main__":
    main()
