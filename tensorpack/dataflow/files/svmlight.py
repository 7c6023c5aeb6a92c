"""Text files of SVMlight and LIBSVM: a label on each line, and the features that are not zero.

A line is `label index:value index:value ...  # comment`, read by scikit-learn. The features stay
sparse in memory and become a vector when a datapoint is taken.
"""

import io
from typing import Any, BinaryIO, Iterator, List, Optional, Tuple

import numpy as np

from tensorpack.utils.checks import as_count_or_none
from tensorpack.utils.optional import require

from ..raw import DataFromList
from .records import DamagedFile, ErrorLimit, PathLike, input_path, refuse_gzip

# Some lines: labels, how many features each has, and the indices and values of all features.
_Lines = Tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class SVMLightData(DataFromList):
    """Yields `[features, label]`: a new float32 vector of `num_features`, and a numpy float64.

    An entry `qid:` is left out. Files with several labels on a line are not read.
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
          filename, shuffle: the file, which is read here, and whether each pass has its own order.
          num_features: the length of the vectors; None for the largest index in the file. Give
            it, and `zero_based`, where several files belong together.
          zero_based: whether the first feature has the index 0, and not 1; None if index 0 tells.
          max_errors: how many wrong lines are skipped, see `RecordsFlow`.
        """
        num_features = as_count_or_none(self, "num_features", num_features)
        path, limit = input_path(filename), ErrorLimit(max_errors)
        rows = _Rows(path, _read(path, limit), num_features, zero_based)
        self.num_features = rows.width
        super().__init__(rows, shuffle)


class _Rows:
    """The datapoints of a file by index."""

    def __init__(self, path: str, pieces: List[_Lines], num_features: Any, zero_based: Any) -> None:
        self._labels, counts, self._indices, self._values = map(np.concatenate, zip(*pieces))
        self._starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
        least = self._indices.min() if len(self._indices) else 1
        if zero_based is False and least == 0:
            raise DamagedFile(f"{path} has an index 0, but zero_based=False says it begins at 1.")
        self._base = 0 if zero_based or least == 0 else 1
        largest = self._indices.max() if len(self._indices) else 0
        needed = int(largest) + 1 - self._base
        if num_features is not None and needed > num_features:
            raise DamagedFile(
                f"{path} has feature {largest}, too large for num_features={num_features} where "
                f"the first one is {self._base}."
            )
        self.width = max(1, needed) if num_features is None else num_features

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> List[Any]:
        row = slice(self._starts[index], self._starts[index + 1])
        features = np.zeros(self.width, np.float32)
        features[self._indices[row] - self._base] = self._values[row]
        return [features, self._labels[index]]


def _read(path: str, limit: ErrorLimit) -> List[_Lines]:
    with open(path, "rb") as file:
        refuse_gzip(path, file.read(2))
        file.seek(0)
        try:
            return [_parse(file)]
        except (ValueError, OverflowError):
            file.seek(0)
            lines = file.readlines()
    return [_parse(io.BytesIO()), *_pieces(lines, 1, path, limit)]


def _pieces(lines: List[bytes], first: int, path: str, limit: ErrorLimit) -> Iterator[_Lines]:
    """Yields what the lines from number `first` hold; halves them until each wrong one is found."""
    try:
        yield _parse(io.BytesIO(b"".join(lines)))
    except (ValueError, OverflowError) as error:
        if len(lines) == 1:
            limit.skip(DamagedFile(f"{path}: line {first}: {str(error).rstrip('.')}."))
            return
        half = len(lines) // 2
        yield from _pieces(lines[:half], first, path, limit)
        yield from _pieces(lines[half:], first + half, path, limit)


def _parse(file: BinaryIO) -> _Lines:
    load = require("sklearn.datasets").load_svmlight_file
    matrix, labels = load(file, dtype=np.float32, zero_based=True)
    if not np.isfinite(labels).all() or not np.isfinite(matrix.data).all():
        raise ValueError("a number is not finite, or too large for float32")
    return np.asarray(labels, np.float64), np.diff(matrix.indptr), matrix.indices, matrix.data
