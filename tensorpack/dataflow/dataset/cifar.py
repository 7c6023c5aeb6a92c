"""CIFAR-10 and CIFAR-100: 32 x 32 colour images, from the archives of the Python version.

The format is described at https://www.cs.toronto.edu/~kriz/cifar.html: files are pickled dicts of
lists and arrays, with the red, green and blue planes. They are read without running code.
"""

from operator import itemgetter
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from tensorpack.utils.packing.old_values import decode_old

from ._files import TRAIN_OR_TEST, DamagedFile, Folder, LabelledDataset, LabelledImages, mean_of

_ADDRESS = "https://www.cs.toronto.edu/~kriz/"


class _Files(NamedTuple):
    sha256: str  # of the archive
    folder: str  # in it
    parts: Dict[str, List[str]]
    names: str  # of the classes
    key: str  # how the keys of labels and of their names begin


_FILES = {  # by the number of classes
    10: _Files(
        "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        "cifar-10-batches-py",
        {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]},
        "batches.meta",
        "label",
    ),
    100: _Files(
        "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
        "cifar-100-python",
        {"train": ["train"], "test": ["test"]},
        "meta",
        "fine_label",
    ),
}


class CifarBase(LabelledDataset):
    """Yields `[image, label]`: uint8 `[32, 32, 3]` in RGB, and an int from 0.

    There are 50,000 datapoints in "train" and 10,000 in "test". The archive is read where it lies
    and not unpacked; where its folder lies beside it, the files there are read.
    """

    def __init__(
        self,
        train_or_test: str,
        shuffle: Optional[bool] = None,
        dir: Folder = None,
        cifar_classnum: int = 10,
        *,
        download: bool = False,
    ) -> None:
        self.train_or_test, self.cifar_classnum = train_or_test, cifar_classnum
        self._FOLDER = f"cifar{cifar_classnum}_data"
        super().__init__(train_or_test, dir, shuffle, download=download)

    @property
    def data(self) -> LabelledImages:
        """All datapoints, by index; may be set."""
        return self.lst

    @data.setter
    def data(self, data: Any) -> None:
        self.lst = data

    def get_label_names(self) -> List[str]:
        """Returns the names of the classes, in the order of the labels."""
        files = _FILES[self.cifar_classnum]
        return list(self._load([files.names], f"{files.key}_names")[0])

    def get_per_pixel_mean(self, names: Sequence[str] = TRAIN_OR_TEST) -> np.ndarray:
        """Returns the mean image of some parts of the dataset, float32 `[32, 32, 3]` in [0, 255].

        To evaluate on the test set, take `["train"]`.
        """

        def images_of(name: str) -> np.ndarray:
            own = name == self.train_or_test and isinstance(self.lst, LabelledImages)
            return self.images if own else self._read(name).images

        return mean_of(TRAIN_OR_TEST, names, images_of)

    def get_per_channel_mean(self, names: Sequence[str] = TRAIN_OR_TEST) -> np.ndarray:
        """Returns the mean of each channel, float32 `[3]`; see `get_per_pixel_mean`."""
        return self.get_per_pixel_mean(names).mean(axis=(0, 1))

    def _read(self, part: str) -> LabelledImages:
        files = _FILES[self.cifar_classnum]
        labels, data = zip(*self._load(files.parts[part], f"{files.key}s", "data"))
        images = np.concatenate(data).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        where = f"{', '.join(files.parts[part])} of {self._directory}"
        found = np.ascontiguousarray(images), np.concatenate(labels)
        return LabelledImages(*found, self.cifar_classnum, where)

    def _load(self, names: Sequence[str], *keys: str) -> List[Any]:
        """Returns what the dicts in some files have: the value of a key, or of each in a list."""
        files = _FILES[self.cifar_classnum]
        paths = [f"{files.folder}/{name}" for name in names]
        url = f"{_ADDRESS}cifar-{self.cifar_classnum}-python.tar.gz"
        contents = self._read_archive(url, files.sha256, files.folder, paths.__contains__)
        loaded = []
        for path in paths:
            try:
                loaded.append(itemgetter(*keys)(decode_old(contents[path])))
            except Exception as error:  # whatever is in the place of lists and arrays
                raise DamagedFile(f"{path} of {self._directory}: {error!r}") from error
        return loaded


class Cifar10(CifarBase):
    """The ten classes of CIFAR-10; see `CifarBase`."""

    _CLASSES = 10

    def __init__(
        self,
        train_or_test: str,
        shuffle: Optional[bool] = None,
        dir: Folder = None,
        *,
        download: bool = False,
    ) -> None:
        super().__init__(train_or_test, shuffle, dir, self._CLASSES, download=download)


class Cifar100(Cifar10):
    """The hundred fine classes of CIFAR-100; see `CifarBase`."""

    _CLASSES = 100
