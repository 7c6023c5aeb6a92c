"""Text files of SVMlight and LIBSVM: a label on each line, and the features that are not zero.

A line is `label index:value index:value ...  # comment`, the indices increasing. It is parsed
here, with a limit on everything that memory is set aside for; what is wrong is said with line and
column. The features stay sparse in memory, and become a vector when a datapoint is wanted.
"""

import array
import math
import os
import re
from typing import Any, BinaryIO, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from tensorpack.utils import get_tqdm

from ._files import DamagedFile, ErrorLimit, PathLike, input_path, is_gzip
from .raw import DataFromList

__all__ = ["SVMLightData"]

_MAX_LINE = 1 << 26  # bytes
_MAX_FEATURES = 1 << 24  # unless told otherwise: a vector of 64 MB
_MAX_DIGITS = 18  # of an index
_MAX_FLOAT = float(np.finfo(np.float32).max)


class SVMLightData(DataFromList):
    """Yields `[features, label]`: a float32 vector, new each time, and a numpy float64.

    An entry `qid:` is checked and left out. Files with several labels on a line are not read.

    Attributes:
      num_features: the length of the vectors.
    """

    def __init__(
        self,
        filename: PathLike,
        shuffle: bool = True,
        num_features: Optional[int] = None,
        zero_based: Optional[bool] = None,
        max_errors: int = 0,
    ) -> None:
        """
        Args:
          filename: of the file, which is read here.
          shuffle: whether each pass has an order of its own.
          num_features: the length of the vectors; None for the largest index there is, up to
            2**24. Give it where several files belong together.
          zero_based: whether the index of the first feature is 0, and not 1. None takes it for 0
            if the file has an index 0 anywhere.
          max_errors: how many lines that are wrong are skipped, each with a warning in the log;
            one more is an error.

        Raises:
          FileNotFoundError: there is no such file.
          ValueError: a line is wrong, there are no datapoints, or `num_features` is less than 1
            or `max_errors` negative.
        """
        if num_features is not None and num_features < 1:
            raise ValueError(f"num_features is the length of a vector, but got {num_features}.")
        path, limit = input_path(filename), ErrorLimit(max_errors)
        rows = _read(path, _MAX_FEATURES if num_features is None else num_features, limit)
        rows.number_features(path, num_features, zero_based)
        self.num_features = rows.width
        super().__init__(rows, shuffle)


class _Rows:
    """Labels and sparse features, by index; indices are as in the file until they are numbered."""

    def __init__(self) -> None:
        self.width = 0
        self._labels = array.array("d")
        self._ends = array.array("q", [0])
        self._indices = array.array("q")
        self._values = array.array("f")
        self._least, self._largest, self._line = 1, 0, 0
        self._base = 1

    def append(self, line: "_Line", number: int) -> None:
        self._labels.append(line.label)
        self._indices.extend(line.indices)
        self._values.extend(line.values)
        self._ends.append(len(self._indices))
        if line.indices:
            self._least = min(self._least, line.indices[0])
            if line.indices[-1] > self._largest:
                self._largest, self._line = line.indices[-1], number

    def number_features(
        self, path: str, num_features: Optional[int], zero_based: Optional[bool]
    ) -> None:
        """Decides which index is the first, and how long the vectors are."""
        if not self._labels:
            raise DamagedFile(f"{path} has no datapoints.")
        if zero_based is False and self._least == 0:
            raise DamagedFile(f"{path} has an index 0, but zero_based=False says it begins at 1.")
        self._base = 0 if zero_based or self._least == 0 else 1
        needed = self._largest + 1 - self._base
        if num_features is not None and needed > num_features:
            raise DamagedFile(
                f"{path}: line {self._line} has feature {self._largest}, too large for "
                f"num_features={num_features} where the first one is {self._base}."
            )
        self.width = max(1, needed if num_features is None else num_features)

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> List[Any]:
        # Copies: an array that numpy looks into cannot grow, and these are small.
        begin, end = self._ends[index], self._ends[index + 1]
        features = np.zeros(self.width, np.float32)
        places = np.array(self._indices[begin:end], np.int64) - self._base
        features[places] = self._values[begin:end]
        return [features, np.float64(self._labels[index])]


class _Line(NamedTuple):
    """What a line says."""

    label: float
    indices: List[int]
    values: List[float]


class _WrongToken(ValueError):
    """A part of a line is wrong; `place` counts the parts from 0."""

    def __init__(self, place: int, message: str) -> None:
        super().__init__(place, message)
        self.place, self.message = place, message


def _read(path: str, max_index: int, limit: ErrorLimit) -> _Rows:
    rows = _Rows()
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        with get_tqdm(total=size, desc=os.path.basename(path), unit="B", unit_scale=True) as bar:
            for number, line in _lines(file, path):
                bar.update(len(line))
                content = line.split(b"#", 1)[0]
                tokens = content.split()
                if not tokens:
                    continue
                try:
                    rows.append(_parse(tokens, max_index), number)
                except _WrongToken as error:
                    column = [found.start() for found in re.finditer(rb"\S+", content)][error.place]
                    limit.skip(
                        DamagedFile(f"{path}: line {number}, column {column + 1}: {error.message}")
                    )
    return rows


def _lines(file: BinaryIO, path: str) -> Iterator[Tuple[int, bytes]]:
    number = 0
    for line in iter(lambda: file.readline(_MAX_LINE + 1), b""):
        number += 1
        if number == 1 and is_gzip(line):
            raise DamagedFile(f"{path} is compressed by gzip. Unpack it first.")
        if len(line) > _MAX_LINE:
            raise DamagedFile(
                f"{path}: line {number} has more than {_MAX_LINE} bytes: is this a text file?"
            )
        yield number, line


def _parse(tokens: List[bytes], max_index: int) -> _Line:
    line = _Line(_number(tokens[0], 0, "label"), [], [])
    last = -1
    for place, token in enumerate(tokens[1:], 1):
        name, colon, text = token.partition(b":")
        if not colon:
            raise _WrongToken(place, f"{_shown(token)} is no index:value.")
        if name == b"qid" and place == 1:
            _index(text, place)
            continue
        index = _index(name, place)
        if index > max_index:
            raise _WrongToken(
                place, f"the index {index} is larger than {max_index}. Give num_features."
            )
        if index <= last:
            raise _WrongToken(place, f"the index {index} comes after {last}: they must increase.")
        last = index
        value = _number(text, place, "value")
        if abs(value) > _MAX_FLOAT:
            raise _WrongToken(place, f"the value {_shown(text)} is too large for float32.")
        line.indices.append(index)
        line.values.append(value)
    return line


def _number(text: bytes, place: int, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or b"_" in text:  # Python takes 1_000 for a number
        raise _WrongToken(place, f"the {what} {_shown(text)} is no finite number.")
    return value


def _index(text: bytes, place: int) -> int:
    if not text.isdigit() or len(text) > _MAX_DIGITS:
        raise _WrongToken(place, f"the index {_shown(text)} is no count.")
    return int(text)


def _shown(text: bytes) -> str:
    shown = text[:40].decode("ascii", "backslashreplace")
    return repr(shown) if len(text) <= 40 else f"{shown!r}..."
