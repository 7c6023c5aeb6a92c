"""Caltech 101 Silhouettes: 28 x 28 outlines of the objects of Caltech 101, from a MATLAB file.

It is described at https://people.cs.umass.edu/~marlin/data.shtml: for each part there are
`NAME_data`, `[N, 784]` of zeros and ones, and `NAME_labels`, `[N, 1]` from 1.
"""

from typing import Any

import numpy as np

from ._files import Folder, LabelledDataset, read_matlab

_URL = "https://people.cs.umass.edu/~marlin/data/caltech101_silhouettes_28_split1.mat"


class Caltech101Silhouettes(LabelledDataset):
    """Yields `[image, label]`: uint8 `[28, 28]` of zeros and ones, and an int from 0 to 100.

    There are 4,100 datapoints in "train", 2,264 in "val" and 2,307 in "test". As MATLAB stores
    columns first, rows of an image are columns of the object.
    """

    _PARTS, _FOLDER, _SHAPE = ("train", "val", "test"), "caltech101_data", (28, 28)

    def __init__(
        self, name: str, shuffle: bool = True, dir: Folder = None, *, download: bool = False
    ) -> None:
        super().__init__(name, dir, shuffle, download=download)

    def _read(self, part: str) -> Any:
        images, numbers = read_matlab(*self._find({_URL: None}), f"{part}_data", f"{part}_labels")
        return images.astype(np.uint8).reshape(-1, 28, 28), numbers[:, 0].astype(np.int64) - 1
