"""Text files of SVMlight and LIBSVM: a label on each line, and the features that are not zero.

A line is `label index:value index:value ...  # comment`, read by scikit-learn. The features stay
sparse in memory and become a vector when a datapoint is taken.
"""

import io
from typing import Any, List, Optional

import numpy as np

from tensorpack.utils.checks import as_count_or_none
from tensorpack.utils.optional import require

from ..raw import DataFromList
from .records import DamagedFile, ErrorLimit, PathLike, input_path


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
        path, base = input_path(filename), "auto" if zero_based is None else zero_based
        try:
            rows = _Rows(path, base, num_features)
        except (ValueError, OverflowError):
            with open(path, "rb") as file:
                lines = _right_lines(file.readlines(), 1, path, ErrorLimit(max_errors))
            try:
                rows = _Rows(io.BytesIO(b"".join(lines)), base, num_features)
            except ValueError as error:
                raise DamagedFile(f"{path}: {error}") from error
        self.num_features = rows.width
        super().__init__(rows, shuffle)


class _Rows:
    """The datapoints of a file by index."""

    def __init__(self, file: Any, zero_based: Any = True, num_features: Any = None) -> None:
        load = require("sklearn.datasets").load_svmlight_file
        options = {"n_features": num_features, "zero_based": zero_based, "dtype": np.float32}
        self._matrix, self._labels = load(file, **options)
        if not (np.isfinite(self._labels).all() and np.isfinite(self._matrix.data).all()):
            raise ValueError("a number is not finite, or too large for float32")
        self.width: int = self._matrix.shape[1]

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, index: int) -> List[Any]:
        row = slice(*self._matrix.indptr[index : index + 2])
        features = np.zeros(self.width, np.float32)
        features[self._matrix.indices[row]] = self._matrix.data[row]
        return [features, self._labels[index]]


def _right_lines(lines: List[bytes], first: int, path: str, limit: ErrorLimit) -> List[bytes]:
    """Returns the lines that can be read; halves them until each wrong one is found."""
    try:
        _Rows(io.BytesIO(b"".join(lines)))
    except (ValueError, OverflowError) as error:
        if len(lines) == 1:
            limit.skip(DamagedFile(f"{path}: line {first}: {str(error).rstrip('.')}."))
            return []
        half = len(lines) // 2
        return [
            *_right_lines(lines[:half], first, path, limit),
            *_right_lines(lines[half:], first + half, path, limit),
        ]
    return lines
