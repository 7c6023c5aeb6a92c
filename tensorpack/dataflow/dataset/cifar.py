"""CIFAR-10 and CIFAR-100: 32 x 32 colour images, from the folders of the Python version.

The format is described at https://www.cs.toronto.edu/~kriz/cifar.html: files are pickled dicts of
lists and arrays, with the red, green and blue planes. They are read without running code.
"""

from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from tensorpack.utils.packing.old_values import BadRecord, RefusedRecord, decode_old

from ._files import TRAIN_OR_TEST, DamagedFile, Folder, PublishedDataset, check_split, mean_of

_SHA256 = {  # of the archive, by the number of classes
    10: "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    100: "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
}
_FOLDER = {10: "cifar-10-batches-py", 100: "cifar-100-python"}
_BATCHES = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}


class CifarBase(PublishedDataset):
    """Yields `[image, label]`: uint8 `[32, 32, 3]` in RGB, and an int from 0.

    There are 50,000 datapoints in "train" and 10,000 in "test". All are in the list `data`, which
    may be set.
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

    def _set(self, datapoints: Any) -> None:
        self.data = datapoints

    @property
    def lst(self) -> Any:  # type: ignore[override]
        """The datapoints."""
        return self.data

    def get_label_names(self) -> List[str]:
        """Returns the names of the classes, in the order of the labels."""
        if self.cifar_classnum == 10:
            return list(self._load("batches.meta")["label_names"])
        return list(self._load("meta")["fine_label_names"])

    def get_per_pixel_mean(self, names: Sequence[str] = TRAIN_OR_TEST) -> np.ndarray:
        """Returns the mean image of some parts of the dataset, float32 `[32, 32, 3]` in [0, 255].

        To evaluate on the test set, take `["train"]`.
        """
        return mean_of(names, lambda name: np.array([image for image, _ in self._read(name)]))

    def get_per_channel_mean(self, names: Sequence[str] = TRAIN_OR_TEST) -> np.ndarray:
        """Returns the mean of each channel, float32 `[3]`; see `get_per_pixel_mean`."""
        return self.get_per_pixel_mean(names).mean(axis=(0, 1))

    def _read(self, part: str) -> List[List[Any]]:
        check_split(part, TRAIN_OR_TEST)
        is_10 = self.cifar_classnum == 10
        datapoints: List[List[Any]] = []
        for name in _BATCHES[part] if is_10 else [part]:
            batch = self._load(name)
            planes = batch["data"].reshape(-1, 3, 32, 32)
            images = np.ascontiguousarray(planes.transpose(0, 2, 3, 1))
            datapoints += map(list, zip(images, batch["labels" if is_10 else "fine_labels"]))
        return datapoints

    def _load(self, name: str) -> Dict[str, Any]:
        """Returns what is in a file of the folder."""
        classes = self.cifar_classnum
        url = f"https://www.cs.toronto.edu/~kriz/cifar-{classes}-python.tar.gz"
        path = self._unpack(url, _SHA256[classes], _FOLDER[classes]) / name
        try:
            return decode_old(path.read_bytes())
        except (OSError, BadRecord, RefusedRecord) as error:
            raise DamagedFile(f"{path}: {error}") from error


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
