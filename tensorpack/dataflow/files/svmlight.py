"""Text files of SVMlight and LIBSVM: a label on each line, and the features that are not zero.

A line is `label index:value index:value ...  # comment`, read by scikit-learn. The features stay
sparse in memory and become a vector when a datapoint is taken.
"""

import io
from typing import Any, List, Optional

import numpy as np

from tensorpack.utils.optional import require

from ..raw import DataFromList
from .records import DamagedFile, PathLike, input_path


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
    ) -> None:
        """
        Args:
          filename, shuffle: the file, which is read here, and whether each pass has its own order.
          num_features: the length of the vectors; None for the largest index in the file. Give
            it, and `zero_based`, where several files belong together.
          zero_based: whether the first feature has the index 0, and not 1; None if index 0 tells.
        """
        path, base = input_path(filename), "auto" if zero_based is None else zero_based
        try:
            rows = _Rows(path, base, num_features)
        except (ValueError, OverflowError) as error:
            with open(path, "rb") as file:
                wrong = _wrong_line(file.readlines())
            raise DamagedFile(f"{path}{wrong}: {str(error).rstrip('.')}.") from error
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


def _wrong_line(lines: List[bytes]) -> str:
    """Returns which line is the first that cannot be read; nothing if it is none by itself."""
    first, end = 0, len(lines)
    while first < end:  # the lines before `first` can be read, with that at `end` they cannot
        middle = (first + end) // 2
        try:
            _Rows(io.BytesIO(b"".join(lines[first : middle + 1])))
            first = middle + 1
        except (ValueError, OverflowError):
            end = middle
    return f": line {first + 1}" if first < len(lines) else ""
