"""What the commands print: tables, sizes, and what is in a datapoint."""

import itertools
from typing import Any, Iterable, Iterator, List, Sequence, Tuple

import numpy as np
from tabulate import tabulate

__all__ = ["facts_table", "number_text", "size_text", "structure", "table"]

_MOST_LEVELS = 4
_MOST_PARTS = 20  # of a list or dict
_MOST_CHARACTERS = 50


def table(rows: Iterable[Sequence[str]], headers: Sequence[str]) -> str:
    """Returns a table with a line of headers."""
    return tabulate(list(rows), headers=list(headers), tablefmt="simple", disable_numparse=True)


def facts_table(facts: Iterable[Tuple[str, str]]) -> str:
    """Returns names and what belongs to them, in two columns."""
    return tabulate(list(facts), tablefmt="plain", disable_numparse=True)


def number_text(number: float) -> str:
    """Returns a number with the three digits that a measurement is good for, such as `14500`."""
    return f"{float(f'{number:.3g}'):.15g}"


def size_text(nbytes: float) -> str:
    """Returns a number of bytes as people say it, such as `12.3 MB` (of a million each)."""
    if nbytes < 1000:
        return f"{nbytes:.0f} B"
    for unit in ("kB", "MB", "GB"):
        nbytes /= 1000
        if nbytes < 1000:
            return f"{nbytes:.1f} {unit}"
    return f"{nbytes / 1000:.1f} TB"


def structure(datapoint: Any, path: str) -> Iterator[List[str]]:
    """Yields a row for each part of a datapoint: how it is reached, what it is, its values.

    Args:
      datapoint: of any kind.
      path: what stands before the indices in the first column.
    """
    return _structure(datapoint, path, _MOST_LEVELS)


def _structure(value: Any, path: str, levels: int) -> Iterator[List[str]]:
    if not isinstance(value, (list, tuple, dict)):
        yield [path, *_described(value)]
        return
    yield [path, f"{type(value).__name__} of {len(value)}", ""]
    if levels == 0:
        return
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in itertools.islice(parts, _MOST_PARTS):
        yield from _structure(part, f"{path}[{_shortened(repr(key))}]", levels - 1)
    if len(value) > _MOST_PARTS:
        yield [path, f"... and {len(value) - _MOST_PARTS} more", ""]


def _described(value: Any) -> Tuple[str, str]:
    name = type(value).__name__
    if isinstance(value, np.ndarray):
        return f"array {value.dtype} {list(value.shape)}", _range(value)
    if isinstance(value, (str, bytes)):
        return f"{name} of {len(value)}", _shortened(repr(value[: _MOST_CHARACTERS + 1]))
    if isinstance(value, np.generic):
        return f"numpy {name}", _shortened(str(value))
    return name, _shortened(repr(value))


def _range(array: np.ndarray) -> str:
    if array.size == 0:
        return "nothing"
    if array.dtype.kind not in "biuf":
        return ""
    if array.dtype.kind != "f":
        return f"{array.min()} to {array.max()}"
    finite = array[np.isfinite(array)]
    strange = array.size - finite.size
    text = f"{finite.min():.6g} to {finite.max():.6g}" if finite.size else ""
    return ", ".join(filter(None, [text, f"{strange} not finite" if strange else ""]))


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 3] + "..."
