"""The curves of docs/performance/growth.md: what grows with what, and how fast.

Each point is measured in a process of its own by `peers/growing.py`; what is noted within one run,
as the time after so many epochs, in one. The exponent of a curve is its slope in logarithms of
both axes over its upper half, where constant parts count least: 1 is linear.
"""

import datetime
import json
import subprocess
import sys
from typing import Dict, NamedTuple, Tuple

import numpy as np
from _programs import HERE, ROOT, output_of, peer_python, returned
from _report import insert, number, say

PAGE = ROOT / "docs" / "performance" / "growth.md"
OURS, BARE, OLD = "tensorpack", "TensorFlow", "tensorpack 0.11"
LINEAR = 1.15  # an exponent beyond which a curve is worse than linear: what noise makes of 1
UNITS = {"memory": "MB", "checkpoint": "MB"}  # of the others seconds
HEAD = "| along | what | whose | first | last | exponent | no worse than linear |\n" + "|---" * 7
FEW = 3  # points of a curve with --quick


class Curve(NamedTuple):
    """What grows, and what is measured along it."""

    along: str
    points: Tuple[int, ...]
    measures: Tuple[str, ...]
    program: str = "train"  # a function of growing.py
    argument: str = "at"  # of it that grows; of "at" one run gives all points
    sides: Tuple[str, ...] = (OURS, OLD)
    options: Dict[str, int] = {}


OF_A_STEP = ("step", "start-up", "memory")
CURVES = {
    "variables": Curve(
        *["variables", (10, 100, 1000, 2500, 5000), (*OF_A_STEP, "checkpoint")],
        argument="variables",
        sides=(OURS, BARE, OLD),
    ),
    "summaries": Curve("summaries", (1, 10, 100, 1000, 2500), OF_A_STEP, argument="summaries"),
    "callbacks": Curve("callbacks", (1, 10, 100, 1000), OF_A_STEP, argument="callbacks"),
    "towers": Curve("towers", (1, 2, 4, 8), OF_A_STEP, argument="towers"),
    "epochs": Curve("epochs", (50, 150, 500, 1500, 5000), ("total",), options={"steps": 2}),
    "checkpoints": Curve(
        *["checkpoints in a directory", (10, 30, 100, 300, 600), ("total",)],
        sides=(OURS, BARE, OLD),
        options={"steps": 2, "kept": 10**6},
    ),
    "list": Curve(
        *["datapoints in a list", (10**3, 10**4, 10**5, 10**6, 10**7)],
        *[("first", "pass", "memory"), "datapoints", "count"],
    ),
    "frames": Curve(
        *["frames in the replay memory", (10**3, 10**4, 10**5, 3 * 10**5)],
        *[("sample", "filling", "memory"), "frames", "count", (OURS,)],
    ),
}


def main(quick):
    """Measures, draws, and writes the page; with `quick` prints the table of the first points."""
    found = {}
    for name, curve in CURVES.items():
        points = curve.points[:FEW] if quick else curve.points
        found[name] = {side: measured(curve, side, points) for side in curve.sides}
        for side, rows in found[name].items():
            slopes = {what: exponent(each) for what, each in rows.items() if each}
            say(f"{name}, {side}: exponents {slopes}")
    if quick:
        say(table(found))
        return
    from run import machine, versions_of

    kept = {"machine": machine(), "date": datetime.date.today().isoformat(), "curves": found}
    kept["versions"] = [versions_of(each) for each in (".venv", ".venv-peer-tensorpack-0.11")]
    PAGE.with_suffix(".json").write_text(json.dumps(kept, indent=1) + "\n")
    pictures = [draw(name, each) for name, each in found.items()]
    head = [f"{kept['machine']}, {kept['date']}.", *kept["versions"]]
    PAGE.write_text(insert(PAGE.read_text(), "\n\n".join([*head, table(found), *pictures])))
    say(f"wrote {PAGE}")


def measured(curve, side, points):
    """A curve of one side: (at, value) of each measure, until a point fails."""
    rows = {what: [] for what in curve.measures}
    for batch in [points] if curve.argument == "at" else [[each] for each in points]:
        given = dict(
            curve.options, **{curve.argument: batch if curve.argument == "at" else batch[0]}
        )
        if curve.argument == "at" and side != BARE:
            given["epochs"] = max(batch)
        program = "bare" if side == BARE else curve.program
        if side == BARE:
            given = {name: each for name, each in given.items() if name in ("variables", "at")}
        say(f"{curve.along} {batch[-1]:,}, {side}:", end=" ")
        try:
            python = peer_python("tensorpack-0.11") if side == OLD else sys.executable
            script = HERE / "peers" / "growing.py"
            got = returned(output_of(script, program, json.dumps(given), python=python))
        except (FileNotFoundError, RuntimeError, subprocess.SubprocessError) as error:
            say(f"does not run: {str(error).strip().splitlines()[-1]}")
            return rows
        for at in batch:
            for what in curve.measures:
                rows[what].append((at, got[f"after {at}" if curve.argument == "at" else what]))
        say(", ".join(f"{what} {number(each[-1][1])}" for what, each in rows.items()))
    return rows


def exponent(points):
    """The slope over the upper half, of logarithms."""
    at, values = np.log(np.maximum(points, 1e-9)).T
    upper = at >= (at[0] + at[-1]) / 2 - 1e-9
    if upper.sum() < 2:
        upper[-2:] = True
    return round(float(np.polyfit(at[upper], values[upper], 1)[0]), 2) + 0.0  # no -0


def table(found):
    """A row for each measure of each side, as Markdown."""
    rows = [HEAD + "|"]
    for name, sides in found.items():
        for side, measures in sides.items():
            for what, points in measures.items():
                if len(points) < 2:
                    continue
                slope, unit = exponent(points), UNITS.get(what, "s")
                ends = [
                    f"{number(value)} {unit} at {at:,}" for at, value in (points[0], points[-1])
                ]
                verdict = "yes" if slope <= LINEAR else "**no**"
                cells = [CURVES[name].along, what, side, *ends, f"{slope:.2f}", verdict]
                rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def draw(name, sides):
    """Writes a picture of a curve, with a panel for each measure; returns it as Markdown."""
    from matplotlib.figure import Figure

    curve = CURVES[name]
    figure = Figure(figsize=(3.2 * len(curve.measures), 2.6), layout="constrained")
    for axes, what in zip(
        figure.subplots(1, len(curve.measures), squeeze=False)[0], curve.measures
    ):
        for side, measures in sides.items():
            if measures[what]:
                axes.loglog(*zip(*measures[what]), "o-", label=side, markersize=3)
        axes.set(title=f"{what}, {UNITS.get(what, 's')}", xlabel=curve.along)
        axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.savefig(str(PAGE.with_name(f"growth-{name}.svg")), metadata={"Date": None})
    return f"![{curve.along}](growth-{name}.svg)"
