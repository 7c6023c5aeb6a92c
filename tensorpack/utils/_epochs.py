"""Reads the scalars of each epoch from a `stats.json` that may be damaged, or made by anybody."""

import io
import json
from contextlib import suppress
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from .untrusted import open_untrusted

__all__ = ["MOST_VALUES", "Epoch", "Epochs", "as_finite", "read_epochs"]

_PIECE = 1 << 20  # characters that are read at a time; no epoch is longer
_MOST_BYTES = 256 << 20
MOST_VALUES = 2000000  # of all epochs together: some 200 MB
_MOST_NAMES = 20000
_HUGE = 1e150  # from which squares and sums have no place among the floats

Epoch = Dict[str, Optional[float]]


class Epochs(NamedTuple):
    """What is in a file.

    Attributes:
      epochs: each with a finite `global_step`; None stands for what is not a finite number.
      whole: whether the file has no more.
      count: how many were read, also those that are not wanted.
      values: how much room is taken.
    """

    epochs: List[Epoch]
    whole: bool
    count: int = 0
    values: int = 0


def as_finite(value: Any) -> Optional[float]:
    """Returns a number that can be computed with; None for all else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        with suppress(OverflowError):  # an integer beyond all floats
            return float(value) if abs(float(value)) < _HUGE else None
    return None


def read_epochs(
    path: str, keep: Callable[[Epoch], bool] = lambda epoch: True, most: int = MOST_VALUES
) -> Epochs:
    """Reads the epochs of a file, as many as there are before what is damaged.

    Args:
      path: of the file.
      keep: which epochs are wanted.
      most: how many values are kept (an epoch counts as four more) before the rest is left out.

    Raises:
      FileNotFoundError: there is none.
      OSError: it cannot be read, or it is a link, a FIFO or huge.
    """
    decoder = json.JSONDecoder(parse_int=float)  # an int of many digits takes long
    names: Dict[str, str] = {}  # each is kept once
    found: List[Epoch] = []
    end = count = values = 0
    raw: Any = open_untrusted(path, _MOST_BYTES)
    with io.TextIOWrapper(io.BufferedReader(raw), "utf-8", "replace") as file:
        text = file.read(_PIECE)
        while values < most and len(names) < _MOST_NAMES:
            try:
                content, end = decoder.raw_decode(text, text.index("{", end))
            except (ValueError, RecursionError):  # perhaps the rest is still to be read
                more = file.read(_PIECE)
                text, end = text[end:] + more, 0
                if not more or len(text) > 2 * _PIECE:
                    break
                continue
            if as_finite(content.get("global_step")) is None:
                break
            epoch = {names.setdefault(k, k): as_finite(v) for k, v in content.items()}
            count += 1
            if keep(epoch):
                found.append(epoch)
                values += len(epoch) + 4
    rest = "".join(text[end:].split())
    whole = rest.startswith("]") if count else rest in ("", "[]")
    return Epochs(found, whole, count, values)
