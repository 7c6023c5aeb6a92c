"""Writes shapes, tables and JSON for the subcommands."""

import json
import math
from typing import Any, Iterable, Sequence


def shape_text(shape: Iterable[int]) -> str:
    """Returns a shape such as `3 x 3 x 64`, or `scalar`."""
    return " x ".join(map(str, shape)) or "scalar"


def table_text(rows: Iterable[Sequence[Any]], headers: Sequence[str] = ()) -> str:
    """Returns rows in columns; columns of numbers are right-aligned."""
    from tabulate import tabulate

    shown = [[printable(str(each)) for each in row] for row in rows]
    return tabulate(shown, headers=headers, tablefmt="simple" if headers else "plain")


def printable(text: str) -> str:
    """Returns a text whose control characters are escaped: files may hold any."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def label_text(text: str) -> str:
    """Returns a text as matplotlib shows it literally, which reads `$` as a formula.

    A legend leaves out labels that begin with `_`.
    """
    text = printable(text).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def json_text(value: Any) -> str:
    """Returns a value as JSON; NaN and infinite numbers become null."""
    return json.dumps(_finite(value), indent=1, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return value
