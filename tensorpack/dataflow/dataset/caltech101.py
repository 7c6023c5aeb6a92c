"""Caltech 101 Silhouettes: 28 x 28 outlines of the objects of Caltech 101, from a MATLAB file.

It is described at https://people.cs.umass.edu/~marlin/data.shtml: for each part there are
`NAME_data`, `[N, 784]` of zeros and ones, and `NAME_labels`, `[N, 1]` from 1.
"""

from typing import Optional

import numpy as np

from tensorpack.utils.fs import get_dataset_path

from ..files.records import DamagedFile, PathLike
from ._files import LabelledFlow, LabelledImages, check_labels, check_split, find_files
from ._matlab import read_matlab

__all__ = ["Caltech101Silhouettes"]

_URL = "https://people.cs.umass.edu/~marlin/data/caltech101_silhouettes_28_split1.mat"
_CLASSES = 101


class Caltech101Silhouettes(LabelledFlow):
    """Yields `[image, label]`: uint8 `[28, 28]` of zeros and ones, and an int from 0 to 100.

    There are 4,100 datapoints in "train", 2,264 in "val" and 2,307 in "test". As MATLAB stores
    columns first, rows of an image are columns of the object.
    """

    def __init__(
        self,
        name: str,
        shuffle: bool = True,
        dir: Optional[PathLike] = None,
        *,
        download: bool = False,
    ) -> None:
        """
        Args:
          name: "train", "val" or "test".
          shuffle: whether each pass has its own order.
          dir: the folder of the file; by default the one of this dataset in $TENSORPACK_DATASET.
          download: whether to download a missing file.
        """
        check_split(name, ("train", "val", "test"))
        directory = get_dataset_path("caltech101_data") if dir is None else dir
        (path,) = find_files(type(self).__name__, directory, {_URL: None}, download)
        variables = read_matlab(path, f"{name}_data", f"{name}_labels")
        images, numbers = variables.values()
        if images.ndim != 2 or images.shape[1] != 784 or numbers.shape != (len(images), 1):
            raise DamagedFile(
                f"{path} has images of {images.shape} and labels of {numbers.shape}, but needs "
                "(N, 784) and (N, 1)."
            )
        if len(numbers) and numbers.min() < 1:
            raise DamagedFile(f"{path} has the label {numbers.min()}, but they count from 1.")
        labels = numbers[:, 0].astype(np.int64) - 1
        check_labels(labels, _CLASSES, path)
        images = images.astype(np.uint8).reshape(-1, 28, 28)
        super().__init__(LabelledImages(images, labels), shuffle)
