"""What is added to an error about one datapoint: its number, what is in it, and its file."""

import itertools
import os
from typing import Any, List, Optional

import numpy as np

from tensorpack.utils._tracebacks import add_note

_MOST_CHARACTERS = 200  # of a text
_MOST_COMPONENTS = 8
_MOST_BITS = 640  # Python writes larger numbers slowly, or not at all


def note_datapoint(
    error: BaseException,
    owner: str,
    number: int,
    datapoint: Any,
    file: Optional[str] = None,
    counted: str = "counted from 0 where the pass began or was resumed",
) -> None:
    """Adds to an error which datapoint it is about; its type and message stay as they are.

    Args:
      error: what is raised; gets a note.
      owner: the name of the flow that failed.
      number: of the datapoint.
      datapoint: what the flow below gave.
      file: where the datapoint was read from, if it is known.
      counted: how the number was counted.
    """
    note = f"{owner} failed on datapoint {number} ({counted}): {summary_of(datapoint)}"
    add_note(error, f"{note}, read from {file}." if file else f"{note}.")


def summary_of(value: Any, depth: int = 2) -> str:
    """Returns what a datapoint or component is in a few words, such as `[uint8 (4, 6, 3), 7]`."""
    if isinstance(value, (np.ndarray, np.generic)):
        return f"{value.dtype} {value.shape}"
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return f"an int of {value.bit_length()} bits"
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, (str, bytes, os.PathLike)):
        text = repr(value if isinstance(value, os.PathLike) else value[: _MOST_CHARACTERS + 1])
        return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "..."
    if depth and isinstance(value, dict):
        items = itertools.islice(value.items(), _MOST_COMPONENTS)
        parts = [f"{summary_of(key):.40}: {summary_of(each, depth - 1)}" for key, each in items]
        return "{" + _joined(parts, len(value)) + "}"
    if depth and isinstance(value, (list, tuple)):
        parts = [summary_of(each, depth - 1) for each in value[:_MOST_COMPONENTS]]
        return "[" + _joined(parts, len(value)) + "]"
    return f"a {type(value).__name__}"


def _joined(parts: List[str], count: int) -> str:
    return ", ".join(parts + ["..."] * (count > len(parts)))
