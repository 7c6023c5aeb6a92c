"""`tensorpack diff A B`: in what two checkpoints differ, variable by variable."""

import argparse
from typing import TYPE_CHECKING, Any, Dict, List

from tensorpack.utils._words import did_you_mean, number

from ._checkpoints import Saved, matching, open_saved
from ._common import FINE, PROBLEM, CommandError, json_text, table_text

if TYPE_CHECKING:
    from tensorpack.utils.checkpoints.variables import Match

HELP = "compare the variables of two checkpoints, log directories or .npz archives"
_PIECE = 1 << 20  # elements that are compared at a time


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    tolerance = number("of at least 0", lambda value: value >= 0)
    add("--tolerance", type=tolerance, default=0.0, metavar="X", help=text)
    add("--all", action="store_true", help="list equal variables as well")
    add("--json", action="store_true", help="print an object of JSON")


def run(args: Any) -> int:
    from tensorpack.utils.checkpoints.variables import match

    first, second = open_saved(args.first), open_saved(args.second)
    rows = {row.name: row for row in match(first.variables, second.variables)}
    chosen = matching(rows, args.select)
    if args.select is not None and not chosen:
        near = did_you_mean(args.select, rows)
        raise CommandError(f"No variable has a match of --select {args.select!r}.{near}")
    found = {name: _difference(rows[name], first, second, args.tolerance) for name in chosen}
    differing = [name for name, each in found.items() if each["what"] != "equal"]
    if args.json:
        args.write(json_text({"a": first.path, "b": second.path, "variables": found}))
    else:
        shown = found if args.all else {name: found[name] for name in differing}
        _write_table(first, second, shown, args)
        args.write(f"{len(differing)} of {len(found)} variables differ.")
    return PROBLEM if differing else FINE


def _difference(row: "Match", first: Saved, second: Saved, tolerance: float) -> Dict[str, Any]:
    """Returns `what`, and where the values differ `max` and `mean` of the absolute differences."""
    name, ours, theirs, verdict = row
    if ours is None or theirs is None:
        return {"what": "only in A" if theirs is None else "only in B"}
    if verdict == "shape":
        return {"what": f"other shape: {list(ours.shape)}, {list(theirs.shape)}"}
    if verdict != "same":
        return {"what": f"other dtype: {ours.dtype}, {theirs.dtype}"}
    return _difference_of_values(first.read(name), second.read(name), tolerance)


def _difference_of_values(ours: Any, theirs: Any, tolerance: float) -> Dict[str, Any]:
    import numpy as np

    ours, theirs = np.asarray(ours).ravel(), np.asarray(theirs).ravel()
    if ours.dtype.kind not in "fiucbV" or ours.dtype.names:
        count = int(np.sum(ours != theirs))
        return {"what": f"{count} elements differ" if count else "equal"}
    largest = total = 0.0
    for start in range(0, ours.size, _PIECE):
        distances = _distances(ours[start : start + _PIECE], theirs[start : start + _PIECE])
        largest, total = max(largest, float(distances.max())), total + float(distances.sum())
    if largest <= tolerance:
        return {"what": "equal"}
    return {"what": "values differ", "max": largest, "mean": total / ours.size}


def _distances(ours: Any, theirs: Any) -> Any:
    """Absolute differences; of a number that is not finite in one of them alone, infinite."""
    import numpy as np

    same = ours == theirs  # before a cast, in which large integers become equal
    if ours.dtype.kind in "iub":
        first, second = ours.astype(np.uint64), theirs.astype(np.uint64)  # modulo 2 ** 64
        return np.where(ours > theirs, first - second, second - first).astype(np.float64)
    wide = np.result_type(ours, np.float64) if ours.dtype.kind in "fc" else np.float64
    ours, theirs = ours.astype(wide), theirs.astype(wide)
    with np.errstate(invalid="ignore", over="ignore"):
        distances = np.where(same | (np.isnan(ours) & np.isnan(theirs)), 0, np.abs(ours - theirs))
    return np.where(np.isnan(distances), np.inf, distances)


def _write_table(first: Saved, second: Saved, rows: Dict[str, Dict[str, Any]], args: Any) -> None:
    args.write(table_text([("A", first.path), ("B", second.path)]) + "\n")
    table: List[List[str]] = []
    for name, each in rows.items():
        numbers = [f"{each[key]:.3g}" if key in each else "" for key in ("max", "mean")]
        table.append([name, each["what"], *numbers])
    if table:
        headers = ["variable", "what", "largest difference", "mean difference"]
        args.write(table_text(table, headers))
