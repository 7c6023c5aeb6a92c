"""`tensorpack plot DIR...`: curves of the scalars of runs, as a picture or in the terminal."""

import argparse
import itertools
import os
import shutil
import sys
from collections import Counter
from typing import Any, Dict, List

from ._codes import FINE, CommandError, number
from ._curves import LABELS, Band, Groups, choose_scalars, make_band, read_groups, smooth
from ._text_plot import Look, draw_text
from ._texts import json_text, label_text, printable, table_text

HELP = "draw curves of the scalars of runs, as a picture or in the terminal"
_COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:purple", "tab:cyan", "tab:red")
_ROWS = 14  # of characters, of a plot in the terminal

Plots = Dict[str, Dict[str, Band]]  # scalar, group


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.description = (
        "Draws scalars of one or several runs from their stats.json. NAME='runs/fast-*' makes one "
        "curve of all directories that match: their mean, in a band from the lowest to the highest."
    )
    add = parser.add_argument
    add("runs", nargs="+", metavar="[NAME=]DIR", help="the log directory of a run, or a pattern")
    text = "a scalar, or a pattern such as 'validation_*'; may be given several times (the most "
    add("-s", "--scalar", action="append", metavar="NAME", help=text + "usual ones, at most four)")
    add("--list", action="store_true", help="list the scalars of the runs, and draw nothing")
    text = "step, epoch, time (hours), or the name of a scalar such as agent_steps (%(default)s)"
    add("-x", "--x", default="step", metavar="AXIS", help=text)
    text = "weight of earlier values in a moving average, from 0 up to below 1 (%(default)s)"
    weight = number("from 0 up to below 1", lambda value: 0 <= value < 1)
    add("--smooth", type=weight, default=0.0, metavar="W", help=text)
    text = "the picture: .png, .svg or .pdf; needs matplotlib. Without it, draws in the terminal"
    add("-o", "--out", metavar="FILE", help=text)
    add("--ascii", action="store_true", help="in the terminal, use no other characters than ASCII")
    add("--json", action="store_true", help="print the points of the curves as JSON")


def run(args: Any) -> int:
    """Draws the curves; returns the exit code."""
    groups = read_groups(args.runs)
    if args.list:
        return _list(groups, args)
    scalars = choose_scalars(groups, args.scalar or [])
    plots = {name: _bands(groups, name, args) for name in scalars}
    if args.out:
        _draw_picture(plots, args)
    if args.json:
        shown = {
            name: {g: band._asdict() for g, band in each.items()} for name, each in plots.items()
        }
        args.write(json_text({"x": args.x, "scalars": shown}))
        return FINE
    if args.out:
        args.write(printable(f"{args.out} shows {', '.join(plots)}."))
    else:
        look = _look(args.ascii)
        for name, bands in plots.items():
            curves = {printable(each): (band.x, band.mean) for each, band in bands.items()}
            text = draw_text(printable(name), curves, LABELS.get(args.x, printable(args.x)), look)
            args.write(text + "\n", coloured=True)
    args.write(_summary(plots, LABELS.get(args.x, args.x)))
    return FINE


def _list(groups: Groups, args: Any) -> int:
    runs = [run for each in groups.values() for run in each]
    counts = Counter(name for run in runs for name in run.names())
    if args.json:
        args.write(json_text({"scalars": counts, "runs": len(runs)}))
    else:
        args.write(table_text(counts.items(), ["scalar", f"in how many of {len(runs)} runs"]))
    return FINE


def _bands(groups: Groups, name: str, args: Any) -> Dict[str, Band]:
    """Returns the band of each group that has the scalar."""
    bands = {}
    for group, runs in groups.items():
        curves = [run.curve(name, args.x) for run in runs]
        band = make_band([(x, smooth(y, args.smooth)) for x, y in curves])
        if band.x:
            bands[group] = band
    return bands


def _look(ascii_only: bool) -> Look:
    """Returns how to draw on the standard output of the program."""
    stream = sys.__stdout__
    try:
        "\u28ff\u2502\u2501".encode(getattr(stream, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        ascii_only = True
    terminal = stream is not None and stream.isatty()
    columns = shutil.get_terminal_size((80, 24)).columns if terminal else 80
    colour = terminal and "NO_COLOR" not in os.environ and not ascii_only
    return Look(max(columns - 12, 20), _ROWS, not ascii_only, colour)


def _summary(plots: Plots, x_label: str) -> str:
    rows: List[List[str]] = []
    for name, bands in plots.items():
        for group, band in bands.items():
            low, high = band.mean.index(min(band.mean)), band.mean.index(max(band.mean))
            rows.append([name, group, str(band.runs)])
            rows[-1] += [f"{band.mean[at]:.4g} at {band.x[at]:.6g}" for at in (low, high, -1)]
    return table_text(rows, ["scalar", "run", "runs", "lowest", "highest", f"last (at {x_label})"])


def _draw_picture(plots: Plots, args: Any) -> None:
    from tensorpack.utils.optional import require

    agg = require("matplotlib.backends.backend_agg", "matplotlib")
    figure = require("matplotlib.figure", "matplotlib").Figure(figsize=(8, 3.2 * len(plots)))
    canvas = agg.FigureCanvasAgg(figure)  # draws without a screen
    for axes, (name, bands) in zip(figure.subplots(len(plots), squeeze=False)[:, 0], plots.items()):
        for (group, band), colour in zip(bands.items(), itertools.cycle(_COLOURS)):
            _draw_band(axes, group, band, colour)
        smoothed = f", smoothed by {args.smooth:g}" if args.smooth else ""
        axes.set(title=label_text(name + smoothed), xlabel=label_text(LABELS.get(args.x, args.x)))
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    figure.tight_layout()
    folder = os.path.dirname(args.out)
    if folder and not os.path.isdir(folder):
        raise CommandError(f"There is no directory {folder!r} for --out {args.out}. Make it first.")
    try:
        canvas.print_figure(args.out, dpi=120)
    except ValueError as error:  # of the format
        raise CommandError(f"--out {args.out}: {error}. Give a name such as curves.svg.") from error


def _draw_band(axes: Any, group: str, band: Band, colour: str) -> None:
    label = label_text(f"{group} ({band.runs} runs)" if band.runs > 1 else group)
    marker = "o" if len(band.x) < 3 else None
    axes.plot(band.x, band.mean, label=label, color=colour, marker=marker, linewidth=1.5)
    if band.runs > 1:
        axes.fill_between(band.x, band.low, band.high, color=colour, alpha=0.2, linewidth=0)
