"""Reads the scalars of each epoch from a `stats.json` that may be damaged."""

import json
import os
from contextlib import suppress
from typing import Any, Dict, Iterator, Optional, Sequence

FILENAME = "stats.json"
_HUGE = 1e150  # from which squares and sums have no place among the floats

Epoch = Dict[str, Optional[float]]  # None is what is not a finite number


def as_finite(value: Any) -> Optional[float]:
    """Returns a number that can be computed with; None for all else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        with suppress(OverflowError):  # an integer beyond all floats
            return float(value) if abs(float(value)) < _HUGE else None
    return None


def read_epochs(path: str) -> Iterator[Epoch]:
    """Yields the epochs of a run, each with a finite `global_step`; what is no number is None.

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
    count = 0
    try:
        for content in parse_epochs(text, json.JSONDecoder(), ("global_step",)):
            count += 1
            yield {name: as_finite(value) for name, value in content.items()}
    except ValueError as error:
        raise ValueError(
            f"{path} cannot be read to its end; its first {count} epochs can."
        ) from error


def parse_epochs(
    text: str, decoder: json.JSONDecoder, needed: Sequence[str]
) -> Iterator[Dict[str, Any]]:
    """Yields the epochs in the text of a `stats.json`, their values as the decoder gives them.

    An object without the finite numbers that are `needed` is no epoch.

    Raises:
      ValueError: there were all epochs before what is damaged.
    """
    end = count = 0
    while True:
        try:
            begin = text.index("{", end)
            content, after = decoder.raw_decode(text, begin)
        except ValueError:
            break
        is_next = text[end:begin].strip() == ("," if count else "[")
        if not is_next or any(as_finite(content.get(name)) is None for name in needed):
            break
        end, count = after, count + 1
        yield content
    rest = "".join(text[end:].split())
    if not (rest.startswith("]") if count else rest in ("", "[]")):
        raise ValueError(f"what follows {count} epochs is none")
