"""What is added to an error about one datapoint: its number, what is in it, and its file."""

import os
from typing import Any, Optional

import numpy as np

from tensorpack.utils.notes import add_note

_MOST_CHARACTERS = 200  # of a text
_MOST_COMPONENTS = 8


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
      error: what is raised; gets a note, see `utils.notes`.
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
    if value is None or isinstance(value, (bool, int, float)):
        return repr(value)
    if isinstance(value, (str, bytes, os.PathLike)):
        text = repr(value)
        return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "..."
    if depth and isinstance(value, dict):
        items = list(value.items())
        parts = [f"{key!r:.40}: {summary_of(each, depth - 1)}" for key, each in items]
        return "{" + _joined(parts) + "}"
    if depth and isinstance(value, (list, tuple)):
        return "[" + _joined([summary_of(each, depth - 1) for each in value]) + "]"
    return f"a {type(value).__name__}"


def _joined(parts: Any) -> str:
    more = ["..."] if len(parts) > _MOST_COMPONENTS else []
    return ", ".join(parts[:_MOST_COMPONENTS] + more)
