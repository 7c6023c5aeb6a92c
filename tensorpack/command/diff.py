"""`tensorpack diff A B`: in what two checkpoints differ, variable by variable."""

import argparse
from typing import Any, Dict, List

from ._checkpoints import Saved, matching, open_saved
from ._codes import FINE, PROBLEM, CommandError, did_you_mean
from ._texts import json_text, table_text

__all__ = ["HELP", "add_arguments", "run"]

HELP = "compare the variables of two checkpoints, log directories or .npz archives"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.description = (
        "Compares two checkpoints, log directories (the newest one there) or .npz archives: "
        "variables that only one has, other shapes and dtypes, and by how much the values differ. "
        "Exit code 0 if nothing differs, 1 if something does."
    )
    add = parser.add_argument
    add("first", metavar="A", help="a checkpoint, log directory or .npz archive")
    add("second", metavar="B", help="another one")
    add("--select", metavar="REGEX", help="only variables whose names have a match")
    text = "differences up to X count as none (%(default)s)"
    add("--tolerance", type=_tolerance, default=0.0, metavar="X", help=text)
    add("--all", action="store_true", help="list equal variables as well")
    add("--json", action="store_true", help="print an object of JSON")


def run(args: Any) -> int:
    """Prints in what two checkpoints differ; returns the exit code."""
    first, second = open_saved(args.first), open_saved(args.second)
    names = sorted({*first.variables, *second.variables})
    chosen = matching(names, args.select)
    if args.select is not None and not chosen:
        near = did_you_mean(args.select, names)
        raise CommandError(f"No variable has a match of --select {args.select!r}.{near}")
    found = {name: _difference(name, first, second, args.tolerance) for name in chosen}
    differing = [name for name, each in found.items() if each["what"] != "equal"]
    if args.json:
        args.write(json_text({"a": first.path, "b": second.path, "variables": found}))
    else:
        rows = found if args.all else {name: found[name] for name in differing}
        _write_table(first, second, rows, args)
        args.write(f"{len(differing)} of {len(found)} variables differ.")
    return PROBLEM if differing else FINE


def _tolerance(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return value


def _difference(name: str, first: Saved, second: Saved, tolerance: float) -> Dict[str, Any]:
    """Returns `what`, and where the values differ `max` and `mean` of the absolute differences."""
    ours, theirs = first.variables.get(name), second.variables.get(name)
    if ours is None or theirs is None:
        return {"what": "only in A" if theirs is None else "only in B"}
    if ours.shape != theirs.shape:
        return {"what": f"other shape: {list(ours.shape)}, {list(theirs.shape)}"}
    if ours.dtype != theirs.dtype:
        return {"what": f"other dtype: {ours.dtype}, {theirs.dtype}"}
    return _difference_of_values(first.read(name), second.read(name), tolerance)


def _difference_of_values(ours: Any, theirs: Any, tolerance: float) -> Dict[str, Any]:
    import numpy as np

    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if not ours.size:
        return {"what": "equal"}
    if ours.dtype.kind not in "fiucbV" or ours.dtype.names:
        count = int(np.sum(ours != theirs))
        return {"what": f"{count} elements differ" if count else "equal"}
    wide = np.complex128 if ours.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore"):
        ours, theirs = ours.astype(wide), theirs.astype(wide)
        distances = np.abs(ours - theirs)
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    distances = np.where(same, 0.0, distances)
    # One that is not finite in A or B alone is infinitely far.
    distances = np.where(np.isnan(distances), np.inf, distances)
    largest, mean = float(distances.max()), float(distances.mean())
    if largest <= tolerance:
        return {"what": "equal"}
    return {"what": "values differ", "max": largest, "mean": mean}


def _write_table(first: Saved, second: Saved, rows: Dict[str, Dict[str, Any]], args: Any) -> None:
    args.write(table_text([("A", first.path), ("B", second.path)]) + "\n")
    table: List[List[str]] = []
    for name, each in rows.items():
        numbers = [f"{each[key]:.3g}" if key in each else "" for key in ("max", "mean")]
        table.append([name, each["what"], *numbers])
    if table:
        headers = ["variable", "what", "largest difference", "mean difference"]
        args.write(table_text(table, headers))
