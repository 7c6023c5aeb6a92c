"""Reads the scalars of each epoch from a `stats.json` that may be damaged, or made by anybody."""

import io
import json
import os
from contextlib import suppress
from typing import Any, Dict, Iterator, Optional, Sequence

from tensorpack.utils.untrusted import open_untrusted

FILENAME = "stats.json"
MOST_VALUES = 2000000  # that are kept, where an epoch counts as four more: some 200 MB
_PIECE = 1 << 20  # characters that are read at a time; no epoch is longer
_MOST_BYTES = 256 << 20
_MOST_NAMES = 20000
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
      OSError: it cannot be read, or it is a link, a FIFO or huge.
      ValueError: there were all epochs before what is damaged, or more values than are kept.
    """
    path = os.path.join(path, FILENAME) if os.path.isdir(path) else path
    decoder = json.JSONDecoder(parse_int=float)  # an int of many digits takes long
    names: Dict[str, str] = {}  # each is kept once
    count = values = 0
    raw: Any = open_untrusted(path, _MOST_BYTES)
    with io.TextIOWrapper(io.BufferedReader(raw), "utf-8", "replace") as file:
        pieces = iter(lambda: file.read(_PIECE), "")
        try:
            for content in parse_epochs(pieces, decoder, ("global_step",)):
                if values >= MOST_VALUES or len(names) >= _MOST_NAMES:
                    raise ValueError("it has more than is kept")
                count, values = count + 1, values + len(content) + 4
                yield {names.setdefault(k, k): as_finite(v) for k, v in content.items()}
        except ValueError as error:
            text = f"{path} cannot be read to its end; its first {count} epochs can."
            raise ValueError(text) from error


def parse_epochs(
    pieces: Iterator[str], decoder: json.JSONDecoder, needed: Sequence[str]
) -> Iterator[Dict[str, Any]]:
    """Yields the epochs in the text of a `stats.json`, their values as the decoder gives them.

    An object without the finite numbers that are `needed` is no epoch.

    Raises:
      ValueError: there were all epochs before what is damaged.
    """
    text, end, count = next(pieces, ""), 0, 0
    while True:
        try:
            begin = text.index("{", end)
            content, after = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):  # perhaps the rest is still to be read
            more = next(pieces, "")
            text, end = text[end:] + more, 0
            if not more or len(text) > 2 * _PIECE:
                break
            continue
        is_next = text[end:begin].strip() == ("," if count else "[")
        if not is_next or any(as_finite(content.get(name)) is None for name in needed):
            break
        end, count = after, count + 1
        yield content
    rest = "".join(text[end:].split())
    if not (rest.startswith("]") if count else rest in ("", "[]")):
        raise ValueError(f"what follows {count} epochs is none")
