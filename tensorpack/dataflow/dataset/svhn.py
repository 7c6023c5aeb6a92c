"""SVHN: the 32 x 32 colour images of single digits on house numbers, from MATLAB files.

The format is described at http://ufldl.stanford.edu/housenumbers/ as "cropped digits": `X` is
`[32, 32, 3, N]`, and `y` the digits, with 10 for 0.
"""

from typing import Dict, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils.fs import get_dataset_path

from ..files.records import DamagedFile, PathLike
from ._files import LabelledFlow, LabelledImages, check_labels, check_split, find_files
from ._matlab import read_matlab

__all__ = ["SVHNDigit"]

_SHAPE = (32, 32, 3)
_ADDRESS = "http://ufldl.stanford.edu/housenumbers/"
_SHA256: Dict[str, str] = {  # by the part of the dataset
    "train": "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
    "test": "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
    "extra": "a133a4beb38a00fcdda90c9489e0c04f900b660ce8a316a5e854838379a71eb3",
}


class SVHNDigit(LabelledFlow):
    """Yields `[image, label]`: uint8 `[32, 32, 3]` in RGB, and an int from 0 to 9.

    There are 73,257 datapoints in "train", 26,032 in "test" and 531,131 in "extra". They are held
    in memory, 3 kB each.
    """

    def __init__(
        self,
        name: str,
        data_dir: Optional[PathLike] = None,
        shuffle: bool = True,
        *,
        download: bool = False,
    ) -> None:
        """
        Args:
          name: "train", "test" or "extra".
          data_dir: the folder of the files; by default the one of this dataset in
            $TENSORPACK_DATASET.
          shuffle: whether each pass has its own order.
          download: whether to download a missing file.
        """
        super().__init__(LabelledImages(*_read_part(name, data_dir, download)), shuffle)

    X, Y = LabelledFlow.images, LabelledFlow.labels

    @staticmethod
    def get_per_pixel_mean(
        names: Sequence[str] = ("train", "test", "extra"), data_dir: Optional[PathLike] = None
    ) -> np.ndarray:
        """Returns the mean image of some parts of the dataset, float32 `[32, 32, 3]` in [0, 255].

        Args:
          names: some of the parts. To evaluate on the test set, leave it out.
          data_dir: the folder of the files.

        Raises:
          FileNotFoundError: the file of a part is missing.
        """
        total, count = np.zeros(_SHAPE, np.int64), 0
        for name in names:
            images, _ = _read_part(name, data_dir, download=False)
            total += images.sum(axis=0, dtype=np.int64)
            count += len(images)
        if not count:
            raise ValueError(f"A mean is of some of {', '.join(_SHA256)}, but got {names!r}.")
        return (total / count).astype(np.float32)


def _read_part(
    name: str, directory: Optional[PathLike], download: bool
) -> Tuple[np.ndarray, np.ndarray]:
    """Returns images, uint8 `[N, 32, 32, 3]`, and labels, uint8 `[N]`."""
    check_split(name, tuple(_SHA256))
    directory = get_dataset_path("svhn_data") if directory is None else directory
    published = {f"{_ADDRESS}{name}_32x32.mat": _SHA256[name]}
    (path,) = find_files("SVHNDigit", directory, published, download)
    images, digits = read_matlab(path, "X", "y").values()
    shapes = images.shape[:3], digits.shape
    if images.dtype != np.uint8 or shapes != (_SHAPE, (*images.shape[3:], 1)):
        raise DamagedFile(
            f"{path} has images of {images.dtype} {images.shape} and labels of {digits.shape}, but "
            "needs uint8 (32, 32, 3, N) and (N, 1)."
        )
    labels = np.where(digits[:, 0] == 10, 0, digits[:, 0]).astype(np.uint8)
    check_labels(labels, 10, path)
    return np.ascontiguousarray(images.transpose(3, 0, 1, 2)), labels
