"""`tensorpack plot DIR...`: curves of the scalars of runs, as a picture or in the terminal."""

import argparse
import fnmatch
import glob
import itertools
import os
import shutil
import sys
from collections import Counter
from contextlib import suppress
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

from tensorpack.runs.curves import LABELS, RESERVED, Band, curve_of, make_band, names_of, smooth
from tensorpack.runs.statistics import FILENAME, Epoch, read_epochs
from tensorpack.utils._words import did_you_mean, did_you_mean_file, number

from ._common import FINE, CommandError, json_text, printable, table_text
from ._text_plot import Look, draw_text

HELP = "draw curves of the scalars of runs, as a picture or in the terminal"
_COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:purple", "tab:cyan", "tab:red")
_ROWS = 14  # of characters, of a plot in the terminal

_USUAL = ("score", "accuracy", "error", "cost", "loss", "reward")  # what is drawn by default


class _Run(NamedTuple):
    directory: str
    epochs: List[Epoch]


Groups = Dict[str, List[_Run]]  # by name, in the order of the command line
Plots = Dict[str, Dict[str, Band]]  # scalar, group


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    groups = _read_groups(args.runs)
    if args.list:
        return _list(groups, args)
    plots = {name: _bands(groups, name, args) for name in _choose(groups, args.scalar or [])}
    x_label = LABELS.get(args.x, args.x)
    if args.out:
        _draw_picture(plots, x_label, args)
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
            text = draw_text(printable(name), curves, printable(x_label), look)
            args.write(text + "\n", coloured=True)
    args.write(_summary(plots, x_label))
    return FINE


def _read_groups(arguments: Sequence[str]) -> Groups:
    """Reads the runs that a command line names: `DIR`, `PATTERN`, or `NAME=` and one of them.

    Directories without a run are skipped with a line on standard error, if there is another.
    """
    groups: Groups = {}
    problems: List[CommandError] = []
    for argument in arguments:
        name, directories = _named(argument)
        for directory in directories:
            own = name or os.path.basename(os.path.abspath(directory))
            try:
                run = _Run(directory, _read_run(directory))
            except CommandError as error:
                problems.append(error)
                continue
            groups.setdefault(own, []).append(run)
    if not groups:
        raise problems[0]
    for problem in problems:
        sys.stderr.write(printable(f"skipped: {problem}") + "\n")
    return groups


def _named(argument: str) -> Tuple[str, List[str]]:
    """A name, or "", and directories; "=" belongs to their paths where there are such."""
    before, _, rest = argument.partition("=")
    for name, pattern in (("", argument), (before, rest)):
        found = [pattern] if os.path.isdir(pattern) else sorted(glob.glob(pattern))
        directories = [each for each in found if os.path.isdir(each)]
        if directories:
            return name, directories
    pattern = rest or argument
    near = did_you_mean_file(pattern) or " Give the log directory of a run, or a pattern of some."
    raise CommandError(f"There is no directory {pattern!r}.{near}")


def _read_run(directory: str) -> List[Epoch]:
    path = os.path.join(directory, FILENAME)
    epochs: List[Epoch] = []
    try:
        with suppress(ValueError):  # a run that was killed may have cut it off
            epochs.extend(read_epochs(path))
    except FileNotFoundError:
        below = sorted(glob.glob(os.path.join(glob.escape(directory), "*", FILENAME)))
        some, pattern = ", ".join(map(os.path.dirname, below[:3])), os.path.join(directory, "*")
        near = f"There are runs in {some}: give these, or {pattern!r}."
        near = near if below else "Give the log directory of a run."
        raise CommandError(f"{directory} has no {FILENAME}. {near}") from None
    if not epochs:
        raise CommandError(f"{path} has no epoch yet. Wait for the first one to end.")
    return epochs


def _choose(groups: Groups, patterns: Sequence[str]) -> List[str]:
    """Returns the scalars that some run has and that match a pattern, such as `validation_*`.

    Without patterns, scores, costs and errors: four at most.
    """
    known = names_of([epoch for runs in groups.values() for run in runs for epoch in run.epochs])
    names = [name for name in known if name not in RESERVED]
    if not names:
        raise CommandError("No run has a scalar with a finite value. Wait for the next epoch.")
    if not patterns:
        ranked = [name for word in _USUAL for name in names if word in name.lower()]
        plain = [name for name in ranked if not name.startswith(("param-", "Summary"))]
        return list(dict.fromkeys(plain or names))[:4]
    chosen: Dict[str, None] = {}
    for pattern in patterns:
        found = [pattern] if pattern in known else fnmatch.filter(names, pattern)
        if not found:
            near = did_you_mean(pattern, names) or " --list lists all."
            raise CommandError(f"No run has a scalar {pattern!r}.{near}")
        chosen.update(dict.fromkeys(found))
    return list(chosen)


def _list(groups: Groups, args: Any) -> int:
    runs = [run for each in groups.values() for run in each]
    counts = Counter(name for run in runs for name in names_of(run.epochs))
    if args.json:
        args.write(json_text({"scalars": counts, "runs": len(runs)}))
    else:
        args.write(table_text(counts.items(), ["scalar", f"in how many of {len(runs)} runs"]))
    return FINE


def _bands(groups: Groups, name: str, args: Any) -> Dict[str, Band]:
    bands = {}
    for group, runs in groups.items():
        curves = []
        for run in runs:
            curve = curve_of(run.epochs, name, args.x)
            if curve is None:
                near = did_you_mean(args.x, [*LABELS, *names_of(run.epochs)])
                near = near or " Give --x step, --x epoch, or the name of a scalar."
                path = os.path.join(run.directory, FILENAME)
                raise CommandError(f"{path} has nothing for --x {args.x}.{near}")
            curves.append((curve[0], smooth(curve[1], args.smooth)))
        band = make_band(curves)
        if band.x:
            bands[group] = band
        elif any(x for x, _ in curves):
            sys.stderr.write(
                f"skipped: no {args.x} is in all runs of {printable(group)}, for {name}\n"
            )
    return bands


def _look(ascii_only: bool) -> Look:
    """Returns how to draw on the standard output of the program."""
    from tensorpack.utils._console import takes_colours

    stream = sys.__stdout__
    try:
        "\u28ff\u2502\u2501".encode(getattr(stream, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        ascii_only = True
    terminal = stream is not None and stream.isatty()
    columns = shutil.get_terminal_size((80, 24)).columns if terminal else 80
    colour = takes_colours(stream) and not ascii_only
    return Look(max(columns - 12, 20), _ROWS, not ascii_only, colour)


def _summary(plots: Plots, x_label: str) -> str:
    rows: List[List[str]] = []
    for name, bands in plots.items():
        for group, band in bands.items():
            low, high = band.mean.index(min(band.mean)), band.mean.index(max(band.mean))
            rows.append([name, group, str(band.runs)])
            rows[-1] += [f"{band.mean[at]:.4g} at {band.x[at]:.12g}" for at in (low, high, -1)]
    return table_text(rows, ["scalar", "run", "runs", "lowest", "highest", f"last (at {x_label})"])


def _draw_picture(plots: Plots, x_label: str, args: Any) -> None:
    from tensorpack.utils.optional import require

    agg = require("matplotlib.backends.backend_agg", "matplotlib")
    figure = require("matplotlib.figure", "matplotlib").Figure(figsize=(8, 3.2 * len(plots)))
    canvas = agg.FigureCanvasAgg(figure)  # draws without a screen
    for axes, (name, bands) in zip(figure.subplots(len(plots), squeeze=False)[:, 0], plots.items()):
        for (group, band), colour in zip(bands.items(), itertools.cycle(_COLOURS)):
            label = _label(f"{group} ({band.runs} runs)" if band.runs > 1 else group)
            style = {"marker": "o" if len(band.x) < 3 else None, "linewidth": 1.5}
            axes.plot(band.x, band.mean, label=label, color=colour, **style)
            if band.runs > 1:
                axes.fill_between(band.x, band.low, band.high, color=colour, alpha=0.2, linewidth=0)
        smoothed = f", smoothed by {args.smooth:g}" if args.smooth else ""
        axes.set(title=_label(name + smoothed), xlabel=_label(x_label))
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


def _label(text: str) -> str:
    """A text as matplotlib shows it literally: no formula, and not left out of a legend."""
    text = printable(text).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text
