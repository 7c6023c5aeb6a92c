"""Estimates the memory of a datapoint, so that a buffer can be bounded in bytes."""

import itertools
import sys
from typing import Any, Tuple

import numpy as np

__all__ = ["nbytes_of"]

# How many elements of a list are looked at: of the datapoint, of its components, of theirs.
_SAMPLES = (64, 16, 4)


def nbytes_of(datapoint: Any) -> int:
    """Returns about how many bytes the arrays, bytes, texts and numbers of a datapoint take.

    It is quick however long the datapoint is: the first elements of a long list or dict stand for
    all of them. An object of another kind counts without what it refers to.
    """
    return _nbytes(datapoint, _SAMPLES)


def _nbytes(value: Any, samples: Tuple[int, ...]) -> int:
    if isinstance(value, (np.ndarray, np.generic, memoryview)):
        return value.nbytes
    if not samples or not value or not isinstance(value, (list, tuple, dict)):
        return sys.getsizeof(value, 0)
    count = min(len(value), samples[0])
    elements = value.values() if isinstance(value, dict) else value
    total = sum(_nbytes(each, samples[1:]) for each in itertools.islice(elements, count))
    return total * len(value) // count
