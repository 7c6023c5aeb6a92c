"""MNIST and Fashion-MNIST: 28 x 28 grey images of ten classes, in four compressed IDX files.

The format is described at http://yann.lecun.com/exdb/mnist/: a magic number (2049 for labels, 2051
for images), the size of each axis, all big-endian 32-bit integers, and the bytes.
"""

import gzip
import os
import struct
import zlib
from typing import Any, List

import numpy as np

from ..files.records import PathLike
from ._files import DamagedFile, Folder, LabelledDataset, find_files

_UNSIGNED_BYTES = 0x800  # the magic number is this and the number of axes


class Mnist(LabelledDataset):
    """Yields `[image, label]`: float32 `[28, 28]` in [0, 1], and an int from 0 to 9.

    There are 60,000 datapoints in "train" and 10,000 in "test". The attributes `images`, float32
    `[N, 28, 28, 1]` in [0, 1], and `labels` may be set.
    """

    _FOLDER, _SHAPE = "mnist_data", (28, 28)
    images: np.ndarray
    labels: np.ndarray
    _ADDRESS = "https://storage.googleapis.com/cvdf-datasets/mnist/"
    _SHA256 = {
        "train-images-idx3": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "t10k-images-idx3": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    }

    def __init__(
        self,
        train_or_test: str,
        shuffle: bool = True,
        dir: Folder = None,
        *,
        download: bool = False,
    ) -> None:
        super().__init__(train_or_test, dir, shuffle, download=download)
        self.train_or_test = train_or_test

    def _read(self, part: str) -> Any:
        prefix = "train" if part == "train" else "t10k"
        names = f"{prefix}-images-idx3", f"{prefix}-labels-idx1"
        published = {f"{self._ADDRESS}{name}-ubyte.gz": self._SHA256[name] for name in names}
        images, labels = self._find(published)
        return extract_images(images), extract_labels(labels)


class FashionMnist(Mnist):
    """Fashion-MNIST: ten classes of clothes in MNIST's format."""

    _FOLDER = "fashion_mnist_data"
    _ADDRESS = (
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"
    )
    _SHA256 = {
        "train-images-idx3": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "train-labels-idx1": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "t10k-images-idx3": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "t10k-labels-idx1": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    }

    def get_label_names(self) -> List[str]:
        """Returns the names of the ten classes, in the order of the labels."""
        return [
            *["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"],
            *["Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"],
        ]


def maybe_download(url: str, work_directory: PathLike) -> str:
    """Returns the path of a file in a directory, and downloads it if it is not there."""
    return find_files("Mnist", os.fsdecode(work_directory), {url: None}, download=True)[0]


def extract_images(filename: str) -> np.ndarray:
    """Returns the images of a file, float32 `[N, h, w, 1]` in [0, 1]."""
    return np.divide(_read_idx(filename, 3)[..., np.newaxis], 255, dtype=np.float32)


def extract_labels(filename: str) -> np.ndarray:
    """Returns the labels of a file, uint8 `[N]`."""
    return _read_idx(filename, 1)


def _read_idx(path: str, axes: int) -> np.ndarray:
    """Returns the content of a compressed IDX file, uint8 with so many axes."""
    try:
        with gzip.open(path, "rb") as file:
            content = file.read()
        magic, *shape = struct.unpack_from(f">{1 + axes}I", content)
        if magic != _UNSIGNED_BYTES + axes:
            raise ValueError(f"it begins with {magic} instead of {_UNSIGNED_BYTES + axes}")
        return np.frombuffer(content, np.uint8, offset=4 * (1 + axes)).reshape(shape)
    except (EOFError, OSError, ValueError, struct.error, zlib.error) as error:
        raise DamagedFile(f"{path} cannot be read: {error}.") from error
