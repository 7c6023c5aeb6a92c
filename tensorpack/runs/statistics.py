"""Reads the scalars of epochs from `stats.json`, which may be cut off, and orders their names."""

import json
import os
import re
from contextlib import suppress
from typing import Any, Dict, Iterator, Optional, Tuple

FILENAME = "stats.json"
RESERVED = ("epoch_num", "global_step")  # what tells epochs apart, not what came of them
IS_SCORE = re.compile(r"score|accuracy|reward|precision|recall|\bauc\b|\bmap\b")
_IS_MAIN = re.compile(r"score|accuracy|cost|loss|error")
_HUGE = 1e150  # from which squares and sums have no place among the floats

Epoch = Dict[str, Optional[float]]  # None is what is not a finite number


def scalar_rank(name: str) -> Tuple[bool, bool, int, str]:
    """Returns a key that sorts the names of scalars: what a run is about first, above all scores,
    and `mean_score` before `of/a/part/mean_score`.
    """
    lower = name.lower()
    is_main = bool(_IS_MAIN.search(lower))
    depth = name.count("/") if is_main else 0
    return not is_main, is_main and not IS_SCORE.search(lower), depth, name


def read_epochs(path: str) -> Iterator[Epoch]:
    """Yields the epochs of a run; a value that is not a finite number is None.

    Args:
      path: the log directory, or a `stats.json`, which may be damaged.

    Raises:
      FileNotFoundError: there is none.
      OSError: it cannot be read.
      ValueError: there were all epochs before what is damaged.
    """
    path = os.path.join(path, FILENAME) if os.path.isdir(path) else path
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    decoder, end, count = json.JSONDecoder(), 0, 0
    with suppress(ValueError):  # there are no more, or the next one is damaged
        while True:
            epoch, after = decoder.raw_decode(text, text.index("{", end))
            if "global_step" not in epoch:
                break
            end, count = after, count + 1
            yield {name: value if _is_number(value) else None for name, value in epoch.items()}
    if text[end:].strip() not in ("]", "[]"):
        raise ValueError(f"{path} cannot be read to its end; its first {count} epochs can.")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and abs(value) < _HUGE
