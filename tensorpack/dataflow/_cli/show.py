"""`show`: what a file of datapoints is, what is in it, and whether it is whole."""

import itertools
import os
from typing import Any, Callable, List, NamedTuple, Tuple

from tensorpack.utils import get_tqdm

from .._files import DamagedFile
from .._length import length_or_none
from .._lmdb.file import data_file
from .formats import check_options, find_source
from .output import facts_table, size_text, structure, table
from .source import EVERY, InputOptions, Source, watch_skipped

__all__ = ["show"]

_MOST_LISTED = 1000  # of what is damaged


class _Seen(NamedTuple):
    """What came of reading a file.

    Attributes:
      facts: about the file.
      datapoints: the first ones.
      whole: how many were read in all.
      damage: what is wrong, a line for each record.
    """

    facts: List[Tuple[str, str]]
    datapoints: List[Any]
    whole: int
    damage: List[str]


def show(args: Any, options: InputOptions, write: Callable[[str], None]) -> int:
    """Does what the command is asked for; returns the exit code: 1 if something is damaged.

    Args:
      args: what the command line gave: `file`, `num` and `check`.
      options: how the file is read.
      write: prints a text.

    Raises:
      CommandError: the file is of no known format.
      ImportError, OSError, ValueError: as by the reader; without `check` also where a record that
        is to be shown is damaged.
    """
    source = find_source(args.file, options)
    check_options(source, options)
    seen = _read_all(source, args.num) if args.check else _read_first(source, args.num)
    write(facts_table(seen.facts))
    rows = [
        row
        for number, datapoint in enumerate(seen.datapoints)
        for row in structure(datapoint, str(number))
    ]
    if rows:
        write("\n" + table(rows, ["datapoint", "what", "values"]))
    if not args.check:
        return 0
    write("\n" + _verdict(source, seen))
    return 1 if seen.damage else 0


def _read_first(source: Source, num: int) -> _Seen:
    flow = source.open()
    try:
        facts = _facts(source, flow)
        flow.reset_state()
        datapoints = list(itertools.islice(flow, num))
    finally:
        flow.close()
    return _Seen(facts, datapoints, len(datapoints), [])


def _read_all(source: Source, num: int) -> _Seen:
    """Reads everything, past what is damaged."""
    facts = _facts_of_file(source)
    datapoints: List[Any] = []
    count = 0
    damage = source.damage()
    if damage:
        return _Seen(facts, [], 0, damage)
    with watch_skipped(quiet=True) as skipped:
        try:
            flow = source.open(EVERY)
            try:
                facts = _facts(source, flow)
                flow.reset_state()
                with get_tqdm(flow, total=length_or_none(flow), desc="checking") as bar:
                    for datapoint in bar:
                        count += 1
                        if len(datapoints) < num:
                            datapoints.append(datapoint)
            finally:
                flow.close()
        except DamagedFile as error:  # nothing behind it can be read
            skipped.append(str(error))
    # One may have been met twice: when the file was looked at, and when it was read.
    return _Seen(facts, datapoints, count, list(dict.fromkeys(skipped)))


def _facts_of_file(source: Source) -> List[Tuple[str, str]]:
    nbytes = os.path.getsize(data_file(source.path))
    size = size_text(nbytes) + (f" ({nbytes} bytes)" if nbytes >= 1000 else "")
    return [("file", source.path), ("format", source.name), ("size", size)]


def _facts(source: Source, flow: Any) -> List[Tuple[str, str]]:
    length = ("datapoints", source.length(flow))
    return [*_facts_of_file(source), *source.facts(flow), length]


def _verdict(source: Source, seen: _Seen) -> str:
    number = len(seen.damage)
    if number:
        lines = [f"DAMAGED: {number} found, beside {seen.whole} datapoints that are whole:"]
        lines += seen.damage[:_MOST_LISTED]
        if number > _MOST_LISTED:
            lines.append(f"... and {number - _MOST_LISTED} more")
        return "\n".join(lines)
    verdict = f"Checked: {seen.whole} datapoints, none is damaged."
    if not source.has_checksums:
        verdict += " There are no checksums in this file: what is changed within a value stays so."
    return verdict
