"""SVHN: the 32 x 32 colour images of single digits on house numbers, from MATLAB files.

The format is described at http://ufldl.stanford.edu/housenumbers/ as "cropped digits": `X` is
`[32, 32, 3, N]`, and `y` the digits, with 10 for 0.
"""

from typing import Any, Sequence

import numpy as np

from ._files import Folder, LabelledDataset, mean_of, read_matlab

_ADDRESS = "http://ufldl.stanford.edu/housenumbers/"
_SHA256 = {  # by the part of the dataset
    "train": "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
    "test": "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
    "extra": "a133a4beb38a00fcdda90c9489e0c04f900b660ce8a316a5e854838379a71eb3",
}


class SVHNDigit(LabelledDataset):
    """Yields `[image, label]`: uint8 `[32, 32, 3]` in RGB, and an int from 0 to 9.

    There are 73,257 datapoints in "train", 26,032 in "test" and 531,131 in "extra", 3 kB each.
    """

    _PARTS, _FOLDER, _SHAPE = tuple(_SHA256), "svhn_data", (32, 32, 3)
    _ARRAYS = ("X", "Y")
    X: np.ndarray
    Y: np.ndarray

    def _read(self, part: str) -> Any:
        url = f"{_ADDRESS}{part}_32x32.mat"
        images, digits = read_matlab(*self._find({url: _SHA256[part]}), "X", "y")
        labels = np.where(digits == 10, 0, digits).astype(np.uint8).ravel()
        return np.ascontiguousarray(images.transpose(3, 0, 1, 2)), labels

    @staticmethod
    def get_per_pixel_mean(
        names: Sequence[str] = ("train", "test", "extra"), data_dir: Folder = None
    ) -> np.ndarray:
        """Returns the mean image of some parts of the dataset, float32 `[32, 32, 3]` in [0, 255].

        To evaluate on the test set, leave it out.
        """
        return mean_of(names, lambda name: SVHNDigit(name, data_dir).X)
