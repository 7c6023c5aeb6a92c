"""`tensorpack inspect CHECKPOINT [OTHER]`: what is in one, and what would load into what."""

import argparse
import json
import os
from collections import Counter
from typing import TYPE_CHECKING, Any, Container, Dict, Iterable, List, Optional, Sequence, Tuple

from tensorpack.utils._words import size_text

from ._checkpoints import ARRAYS, Saved, matching, of_training, open_saved
from ._common import FINE, PROBLEM, CommandError

if TYPE_CHECKING:
    from tensorpack.utils.checkpoints.variables import Match, Variable

HELP = "show what is in a checkpoint, a log directory or an .npz archive"
_PATH = (
    "a checkpoint such as train_log/run/model-5000, a log directory (its newest one), or an .npz"
)
_VERDICTS = {
    "same": "loaded",
    "cast": "loaded, cast",
    "dtype": "DOES NOT FIT: its dtype",
    "missing": "missing: keeps its initial value",
    "extra": "only in the first: left out",
}
_RECORDS = ("log.log", "stats.json", "run.json", "episodes.csv", "report.html")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Shows the variables of a checkpoint, their dtypes, shapes and sizes, the step, and what "
        "is beside it. With a second one, tells which of its variables would be loaded from the "
        "first, as SmartInit does it: exit code 1 if one of them would not."
    )
    add = parser.add_argument
    add("path", metavar="CHECKPOINT", help=_PATH)
    add("other", nargs="?", metavar="OTHER", help="a checkpoint of the model to load it into")
    add("--model", metavar="OTHER", help="the same as the second argument")
    add("--select", metavar="REGEX", help="only variables whose names have a match")
    add("--sort", choices=["name", "size"], default="name", help="the order (%(default)s)")
    text = "compare the files with the checksums of the manifest; exit code 1 if they differ"
    add("--check", action="store_true", help=text)
    text = "also what only training uses: what optimizers keep, the step, averages of summaries"
    add("--all", action="store_true", help=text)
    add("--json", action="store_true", help="print an object of JSON")


def run(args: Any) -> int:
    if args.other is not None and args.model is not None:
        raise CommandError("OTHER and --model OTHER are the same: give one of them.")
    saved = open_saved(args.path)
    other = args.other if args.other is not None else args.model
    if other is not None:
        return _compare(saved, open_saved(other), args)
    damage = _damage(saved) if args.check else None
    variables = [(name, saved.variables[name]) for name in matching(saved.variables, args.select)]
    by_size = args.sort == "size"
    variables.sort(key=lambda item: (-(item[1].nbytes or 0) if by_size else 0, item[0]))
    hidden = () if args.all else of_training(saved.variables)
    facts = _facts(saved)
    if args.check:
        facts["checked"] = damage or ("whole" if saved.manifest else "no manifest to check with")
    if args.json:
        described = {
            name: {"dtype": each.dtype, "shape": list(each.shape), "nbytes": each.nbytes}
            for name, each in variables
        }
        args.write(json.dumps({**facts, "variables": described}, indent=1))
    else:
        facts["files"] = [f"{name} ({size})" for name, size in facts["files"].items()]
        rows = [(k, ", ".join(v) if isinstance(v, list) else v) for k, v in facts.items() if v]
        args.write(_table(rows))
        args.write("\n" + _variable_table(variables, hidden))
    return PROBLEM if damage else FINE


def _facts(saved: Saved) -> Dict[str, Any]:
    folder, name = os.path.split(saved.path)
    names = sorted(os.listdir(folder or "."))
    own = [each for each in names if each == name or each.startswith(name + ".")]
    sizes = {each: os.path.getsize(os.path.join(folder, each)) for each in own}
    is_archive = saved.path.endswith(ARRAYS)
    facts: Dict[str, Any] = {
        "path": saved.path,
        "format": "npz" if is_archive else "checkpoint",
        "step": _step(saved),
        "tensorflow": (saved.manifest or {}).get("tensorflow"),
        "files": {each: size_text(size) for each, size in sizes.items()},
    }
    if not is_archive:
        facts["state"] = _state(saved, sizes)
    indices = [each[: -len(".index")] for each in names if each.endswith(".index")]
    facts["other checkpoints"] = [each for each in indices if each != name]
    facts["beside it"] = [each for each in names if each in _RECORDS]
    return facts


def _step(saved: Saved) -> Optional[int]:
    if saved.manifest is not None:
        return int(saved.manifest["step"])
    variable = saved.variables.get("global_step")
    if variable is not None and variable.shape == () and "int" in variable.dtype:
        return int(saved.read("global_step"))
    number = saved.path.rpartition("-")[2]
    return int(number) if number.isdigit() else None


def _state(saved: Saved, sizes: Dict[str, int]) -> str:
    name = os.path.basename(saved.path) + ".state"
    if name not in sizes:
        return "none: its weights can be loaded, a run cannot be resumed from it"
    from tensorpack.utils.checkpoints.files import CheckpointCorrupt
    from tensorpack.utils.checkpoints.find import SEGMENTS, UnsupportedState, segments_of

    text = f"{name} ({size_text(sizes[name])})"
    try:
        segments = segments_of(saved.path)
    except (CheckpointCorrupt, UnsupportedState) as error:
        return f"{text} cannot be read: {getattr(error, 'reason', error)}"
    folder = os.path.join(os.path.dirname(saved.path), SEGMENTS)
    if segments:
        nbytes = sum(each.size for each in segments)
        text += f" with {len(segments)} files in {folder} ({size_text(nbytes)})"
    missing = [each for each in segments if not os.path.isfile(os.path.join(folder, each.name))]
    if missing:
        return f"{text}, of which {len(missing)} are missing: a run loses what was in these"
    return f"{text}: a run can be resumed from it"


def _damage(saved: Saved) -> Optional[str]:
    from tensorpack.utils.checkpoints.files import CheckpointCorrupt, verify

    try:
        verify(saved.path)
    except CheckpointCorrupt as error:
        return f"DAMAGED: {error.reason}"
    return None


def _variable_table(variables: List[Tuple[str, "Variable"]], hidden: Container[str]) -> str:
    """Returns a table, and below it what all of them are together, those left out too."""
    shown = [item for item in variables if item[0] not in hidden]
    rows = [
        (name, each.dtype, " x ".join(map(str, each.shape)) or "scalar", size_text(each.nbytes))
        for name, each in shown
    ]
    table = _table(rows, ["variable", "dtype", "shape", "size"]) + "\n" if rows else ""
    text = table + _total([each for _, each in shown])
    if len(shown) < len(variables):
        others = [each for name, each in variables if name in hidden]
        text += f"\nand what only training uses (--all): {_total(others)}"
    return text


def _total(variables: List["Variable"]) -> str:
    size = sum(each.size for each in variables)
    nbytes = sum(each.nbytes or 0 for each in variables)
    return f"{len(variables)} variables, {size:,} numbers, {size_text(nbytes)}"


def _compare(saved: Saved, other: Saved, args: Any) -> int:
    """Tells what would be loaded from one into the model of the other."""
    from tensorpack.utils.checkpoints.variables import match, scope_hint

    matched = {row.name: row for row in match(other.variables, saved.variables)}
    names = matching(matched, args.select)
    hidden = [] if args.all else of_training(names)
    found = [matched[name] for name in names if name not in hidden]
    verdicts = {row.name: _verdict(row) for row in found}
    loads = any(each.startswith("loaded") for each in verdicts.values())
    if args.json:
        shown = {"from": saved.path, "into": other.path, "variables": verdicts}
        args.write(json.dumps(shown, indent=1))
    else:
        rows = [(row.name, row.theirs or "", row.ours or "", verdicts[row.name]) for row in found]
        args.write(_table([("from", saved.path), ("into", other.path)]))
        args.write("\n" + _table(rows, ["variable", "from", "into", "what"]))
        counts = [f"{count} {each}" for each, count in Counter(verdicts.values()).items()]
        hint = "" if loads else scope_hint(other.variables, saved.variables)
        args.write(", ".join(counts) + "." * bool(hint) + hint)
        if hidden:
            args.write(f"and {len(hidden)} that only training uses (--all)")
    fine = {*verdicts.values()} <= {"loaded", "loaded, cast", "only in the first: left out"}
    return FINE if fine and loads else PROBLEM


def _verdict(row: "Match") -> str:
    if row.verdict != "shape":
        return _VERDICTS[row.verdict]
    reshaped = row.ours is not None and row.theirs is not None and row.ours.size == row.theirs.size
    return "DOES NOT FIT" + ": ignore_mismatch=True reshapes it" * reshaped


def _table(rows: Iterable[Sequence[Any]], headers: Sequence[str] = ()) -> str:
    from tabulate import tabulate

    shown = [[str(each) for each in row] for row in rows]
    return tabulate(shown, headers=headers, tablefmt="simple" if headers else "plain")
