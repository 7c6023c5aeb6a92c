"""Datasets in MATLAB files: house numbers, outlines, and photographs with contours."""

from typing import Any, List, Sequence

import numpy as np

from tensorpack.utils.optional import require

from ..files.images import decode_image
from ..files.records import DamagedFile, PathLike
from ._files import Folder, LabelledDataset, PublishedDataset, mean_of


class SVHNDigit(LabelledDataset):
    """The digits on house numbers: `[image, label]`, uint8 `[32, 32, 3]` in RGB and an int.

    There are 73,257 datapoints in "train", 26,032 in "test" and 531,131 in "extra", 3 kB each. The
    files are the "cropped digits" of http://ufldl.stanford.edu/housenumbers/: `X` is
    `[32, 32, 3, N]`, and `y` the digits, with 10 for 0.
    """

    _SHA256 = {
        "train": "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
        "test": "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
        "extra": "a133a4beb38a00fcdda90c9489e0c04f900b660ce8a316a5e854838379a71eb3",
    }
    _PARTS, _FOLDER, _SHAPE = tuple(_SHA256), "svhn_data", (32, 32, 3)
    _ARRAYS = ("X", "Y")
    X: np.ndarray
    Y: np.ndarray

    def _read(self, part: str) -> Any:
        url = f"http://ufldl.stanford.edu/housenumbers/{part}_32x32.mat"
        images, digits = read_matlab(*self._find({url: self._SHA256[part]}), "X", "y")
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


class Caltech101Silhouettes(LabelledDataset):
    """Outlines of objects: `[image, label]`, uint8 `[28, 28]` of 0 and 1, and an int from 0 to 100.

    There are 4,100 datapoints in "train", 2,264 in "val" and 2,307 in "test"; see
    https://people.cs.umass.edu/~marlin/data.shtml. As MATLAB stores columns first, rows of an
    image are columns of the object.
    """

    _URL = "https://people.cs.umass.edu/~marlin/data/caltech101_silhouettes_28_split1.mat"
    _PARTS, _FOLDER, _SHAPE = ("train", "val", "test"), "caltech101_data", (28, 28)

    def __init__(
        self, name: str, shuffle: bool = True, dir: Folder = None, *, download: bool = False
    ) -> None:
        super().__init__(name, dir, shuffle, download=download)

    def _read(self, part: str) -> Any:
        images, numbers = read_matlab(
            *self._find({self._URL: None}), f"{part}_data", f"{part}_labels"
        )
        return images.astype(np.uint8).reshape(-1, 28, 28), numbers[:, 0].astype(np.int64) - 1


class BSDS500(PublishedDataset):
    """Photographs and contours that several people drew in each: `[image, edges]`, uint8
    `[321, 481, 3]` in BGR, and float32 `[321, 481]`.

    The edges are the share of people who drew a contour at a pixel, from 0 to 1. Upright images
    are transposed with their edges. There are 200 datapoints in "train", 100 in "val" and 200 in
    "test", 1 MB of memory each. The archive has for each JPEG a MATLAB file with a cell
    `groundTruth`, one structure for each person, in which `Boundaries` is 1 where a contour is.
    """

    _URL = "https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/BSR/BSR_bsds500.tgz"
    _SHA256 = "97e49d31764f3912f0c4122707d53062ac9e783ba0f095e447a4d53c1a41af8e"
    _PARTS, _FOLDER = ("train", "val", "test"), "bsds500_data"

    def _read(self, part: str) -> List[List[Any]]:
        folder = self._unpack(self._URL, self._SHA256, "BSR") / "BSDS500" / "data"
        pairs: List[List[Any]] = []
        for path in sorted((folder / "images" / part).glob("*.jpg")):
            image = decode_image(path.read_bytes(), str(path), bgr=True)
            (people,) = read_matlab(folder / f"groundTruth/{part}/{path.stem}.mat", "groundTruth")
            contours = [person["Boundaries"][0, 0] for person in people.ravel()]
            edges = np.mean(contours, axis=0, dtype=np.float32)
            if len(image) > len(image[0]):  # upright
                image, edges = image.swapaxes(0, 1), edges.T
            pairs.append([np.ascontiguousarray(image), np.ascontiguousarray(edges)])
        return pairs


def read_matlab(path: PathLike, *names: str) -> List[np.ndarray]:
    """Returns variables of a file of MATLAB's version 5."""
    matlab = require("scipy.io")
    try:
        variables = matlab.loadmat(str(path), variable_names=names)
        return [variables[name] for name in names]
    except Exception as error:  # whatever damaged bytes lead scipy to
        raise DamagedFile(
            f"{path} is not a MATLAB file of {' and '.join(names)} that scipy reads: {error!r}"
        ) from error
