"""`tensorpack runs DIR`: a table of the runs below a directory."""

import argparse
import itertools
import os
import time
from contextlib import suppress
from typing import Any, Dict, List

from ._common import FINE, CommandError, json_text, table_text

HELP = "list the runs below a directory: state, step, best value, age"
_RECORD, _STATS = "run.json", "stats.json"
_COLUMNS = ("run", "state", "step", "epoch", "best", "age")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Lists the runs in a directory and below it, the youngest first: whether each is running, "
        "finished, was stopped, has failed or died (its process crashed or was killed), its last "
        "step and epoch, its best value, and how long ago it wrote."
    )
    add = parser.add_argument
    add("directory", metavar="DIR", nargs="?", default="train_log", help="default: train_log")
    add("--json", action="store_true", help="print a list of objects of JSON; ages are in seconds")


def run(args: Any) -> int:
    from tensorpack.report._facts import duration_text

    if not os.path.isdir(args.directory):
        raise CommandError(f"{args.directory} is not a directory: give one below which runs are.")
    found = []
    for folder, _, names in itertools.chain(*map(os.walk, _tops(args.directory))):
        if _RECORD in names or _STATS in names:
            name = os.path.relpath(folder, args.directory)
            found.append({"run": name, **_describe(folder, time.time())})
    found.sort(key=lambda each: (each["age"], each["run"]))
    if args.json:
        args.write(json_text(found))
    elif not found:
        args.write(f"There is no run in {args.directory}: a run has a {_RECORD} or a {_STATS}.")
    else:
        shown = [{**each, "age": duration_text(int(each["age"]))} for each in found]
        rows = [["" if each[k] is None else each[k] for k in _COLUMNS] for each in shown]
        args.write(table_text(rows, _COLUMNS))
    return FINE


def _tops(directory: str) -> List[str]:
    """Returns the directory, and the links in it that lead to another place."""
    found, here = [directory], os.path.realpath(directory)
    for each in filter(os.DirEntry.is_symlink, os.scandir(directory)):
        there = os.path.realpath(each.path)
        if os.path.isdir(each.path) and os.path.commonpath([here, there]) not in (here, there):
            found.append(each.path)
    return found


def _describe(folder: str, now: float) -> Dict[str, Any]:
    from tensorpack.report._facts import result_of
    from tensorpack.runs.record import read_record
    from tensorpack.runs.statistics import read_epochs

    attempt: Dict[str, Any] = {}
    epochs: List[Any] = []
    with suppress(OSError, ValueError):
        attempt = ((read_record(folder) or {}).get("attempts") or [{}])[-1]
    with suppress(OSError, ValueError):  # there may be none yet
        epochs.extend(read_epochs(os.path.join(folder, _STATS)))
    last = epochs[-1] if epochs else {}
    times = [now]
    for name in (_RECORD, _STATS, "log.log", "checkpoint"):
        with suppress(OSError):
            times.append(os.lstat(os.path.join(folder, name)).st_mtime)
    return {
        "state": result_of(attempt, folder).replace("lost", "died") if attempt else "unknown",
        "step": _whole(attempt.get("step"), last.get("global_step")),
        "epoch": _whole(attempt.get("epoch"), last.get("epoch_num")),
        "best": _best(attempt.get("best"), epochs),
        "age": max(0.0, now - max(times[1:], default=now)),
        "message": str(attempt.get("message") or ""),
    }


def _whole(*values: Any) -> Any:
    numbers = [each for each in values if isinstance(each, (int, float)) and 0 <= each < 1e15]
    return int(numbers[0]) if numbers else None


def _best(kept: Any, epochs: List[Any]) -> str:
    """What a `MinSaver` has kept, or else the best of the scalar that a page shows first."""
    from tensorpack.runs.curves import IS_SCORE, RESERVED, scalar_rank

    if isinstance(kept, list) and kept:
        return ", ".join(str(each).partition(" (")[2].rstrip(")") or str(each) for each in kept)
    names = {name for epoch in epochs for name in epoch} - {*RESERVED}
    by_page = [(not IS_SCORE.search(name.lower()), scalar_rank(name), name) for name in names]
    is_least, _, name = min(by_page, default=(True, (), ""))
    values = [(each[name], each["global_step"]) for each in epochs if each.get(name) is not None]
    if not values:
        return ""
    value, step = (min if is_least else max)(values, key=lambda each: each[0] or 0.0)
    return f"{name} {value:.5g} at step {step:.0f}"
