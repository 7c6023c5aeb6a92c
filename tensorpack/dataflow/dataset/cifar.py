"""CIFAR-10 and CIFAR-100: 32 x 32 colour images, from the archives of the binary or Python version.

The formats are described at https://www.cs.toronto.edu/~kriz/cifar.html: a record is the label (of
CIFAR-100 a coarse and a fine one) and the red, green and blue planes. The files of the Python
version are pickled dicts of lists and arrays, which are read without running code.
"""

import os
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils.fs import get_dataset_path
from tensorpack.utils.old_values import decode_old

from ..files.records import DamagedFile, PathLike
from ._files import (
    TRAIN_OR_TEST,
    LabelledFlow,
    LabelledImages,
    check_labels,
    check_split,
    find_files,
    read_file,
    read_members,
)

__all__ = ["Cifar10", "Cifar100", "CifarBase"]

_IMAGE = (3, 32, 32)


class _Archive(NamedTuple):
    url: str
    sha256: str
    folder: str  # in the archive
    files: Dict[str, List[str]]  # in the folder, by the part of the dataset
    names: str  # the file with the names of the classes
    label_bytes: int  # the last one counts
    key: str = ""  # of the Python version: how the keys of labels and their names begin


_ARCHIVES = {  # of the binary version, by the number of classes
    10: _Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
        "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        "cifar-10-batches-bin",
        {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "test": ["test_batch.bin"]},
        "batches.meta.txt",
        1,
    ),
    100: _Archive(
        "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
        "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
        "cifar-100-binary",
        {"train": ["train.bin"], "test": ["test.bin"]},
        "fine_label_names.txt",
        2,
    ),
}
_PICKLED = {  # of the Python version: the hash and folder of the archive, the names, the key
    10: (
        "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        *("cifar-10-batches-py", "batches.meta", "label"),
    ),
    100: (
        "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
        *("cifar-100-python", "meta", "fine_label"),
    ),
}


class CifarBase(LabelledFlow):
    """Yields `[image, label]`: uint8 `[32, 32, 3]` in RGB, and an int from 0.

    There are 50,000 datapoints in "train" and 10,000 in "test". The archive is read where it lies
    and not unpacked; where its folder lies beside it, the files there are read.
    """

    def __init__(
        self,
        train_or_test: str,
        shuffle: Optional[bool] = None,
        dir: Optional[PathLike] = None,
        cifar_classnum: int = 10,
        *,
        download: bool = False,
    ) -> None:
        """
        Args:
          train_or_test: "train" or "test".
          shuffle: whether each pass has its own order; None for "train" only.
          dir: the folder of the archive; by default the one of this dataset in $TENSORPACK_DATASET.
          cifar_classnum: 10 or 100.
          download: whether to download a missing archive.
        """
        check_split(train_or_test)
        if cifar_classnum not in _ARCHIVES:
            raise ValueError(f"There are CIFAR-10 and CIFAR-100, but got {cifar_classnum}.")
        self.train_or_test = train_or_test
        self.cifar_classnum = cifar_classnum
        self._directory = os.fspath(
            get_dataset_path(f"cifar{cifar_classnum}_data") if dir is None else dir
        )
        self._archive = _find_archive(self._directory, cifar_classnum)
        self._download = download
        shuffle = train_or_test == "train" if shuffle is None else shuffle
        super().__init__(LabelledImages(*self._read_part(train_or_test)), shuffle)

    @property
    def data(self) -> LabelledImages:
        """All datapoints, by index."""
        return self.lst

    def get_label_names(self) -> List[str]:
        """Returns the names of the classes, in the order of the labels."""
        name = self._archive.names
        text = self._read_files([name])[name].decode("ascii", "replace")
        return [line.strip() for line in text.splitlines() if line.strip()]

    def get_per_pixel_mean(self, names: Sequence[str] = TRAIN_OR_TEST) -> np.ndarray:
        """Returns the mean image of some parts of the dataset, float32 `[32, 32, 3]` in [0, 255].

        Args:
          names: "train", "test" or both. To evaluate on the test set, take `["train"]`.
        """
        total, count = np.zeros(_IMAGE[1:] + _IMAGE[:1], np.int64), 0
        for name in names:
            check_split(name)
            mine = name == self.train_or_test
            images = self.lst.images if mine else self._read_part(name)[0]
            total += images.sum(axis=0, dtype=np.int64)
            count += len(images)
        if not count:
            raise ValueError(f"A mean is of 'train', 'test' or both, but got {names!r}.")
        return (total / count).astype(np.float32)

    def get_per_channel_mean(self, names: Sequence[str] = TRAIN_OR_TEST) -> np.ndarray:
        """Returns the mean of each channel, float32 `[3]`; see `get_per_pixel_mean`."""
        return self.get_per_pixel_mean(names).mean(axis=(0, 1))

    def _read_part(self, part: str) -> Tuple[np.ndarray, np.ndarray]:
        """Returns images, uint8 `[N, 32, 32, 3]`, and labels, uint8 `[N]`."""
        names = self._archive.files[part]
        contents = self._read_files(names)
        size = self._archive.label_bytes + int(np.prod(_IMAGE))
        for name in names:
            if len(contents[name]) % size:
                raise DamagedFile(
                    f"{name} of {self._directory} has {len(contents[name])} bytes, which is no "
                    f"multiple of a record's {size}."
                )
        content = b"".join(contents[name] for name in names)
        records = np.frombuffer(content, np.uint8).reshape(-1, size)
        labels = records[:, self._archive.label_bytes - 1].copy()
        check_labels(labels, self.cifar_classnum, f"{', '.join(names)} of {self._directory}")
        planes = records[:, self._archive.label_bytes :].reshape((-1, *_IMAGE))
        return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels

    def _read_files(self, names: Sequence[str]) -> Dict[str, bytes]:
        """Returns the content of files, from the unpacked folder if they are all there."""
        folder = self._archive.folder
        paths = {name: os.path.join(self._directory, folder, name) for name in names}
        if all(map(os.path.isfile, paths.values())):
            return {name: self._as_binary(name, read_file(path)) for name, path in paths.items()}
        published = {self._archive.url: self._archive.sha256}
        (path,) = find_files(type(self).__name__, self._directory, published, self._download)
        wanted = [f"{folder}/{name}" for name in names]
        contents = read_members(path, wanted.__contains__)
        missing = [each for each in wanted if each not in contents]
        if missing:
            raise DamagedFile(f"{path} has no {', '.join(missing)}. Is it the published one?")
        return {name: self._as_binary(name, contents[f"{folder}/{name}"]) for name in names}

    def _as_binary(self, name: str, content: bytes) -> bytes:
        """Returns what the binary version has in the place of a file of either version."""
        key = self._archive.key
        if not key:
            return content
        try:
            found = decode_old(content)
            if name == self._archive.names:
                return "\n".join(found[f"{key}_names"]).encode()
            labels = np.frombuffer(bytes(list(found[f"{key}s"])), np.uint8)[:, np.newaxis]
            records = np.hstack([labels, found["data"].reshape(len(labels), -1)])
            return records.astype(np.uint8, casting="safe").tobytes()
        except Exception as error:  # whatever is in the place of lists and arrays
            raise DamagedFile(f"{name} of {self._directory}: {error}") from error


def _find_archive(directory: str, classes: int) -> _Archive:
    """Returns the version whose folder, or else whose archive, is there; the binary one first."""
    binary = _ARCHIVES[classes]
    sha256, folder, names, key = _PICKLED[classes]
    url = binary.url.replace("binary", "python")
    files = {part: [name[: -len(".bin")] for name in each] for part, each in binary.files.items()}
    pickled = _Archive(url, sha256, folder, files, names, 1, key)
    for attribute in "folder", "url":
        for each in binary, pickled:
            place = os.path.basename(getattr(each, attribute))
            if os.path.exists(os.path.join(directory, place)):
                return each
    return binary


class Cifar10(CifarBase):
    """The ten classes of CIFAR-10; see `CifarBase`."""

    def __init__(
        self,
        train_or_test: str,
        shuffle: Optional[bool] = None,
        dir: Optional[PathLike] = None,
        *,
        download: bool = False,
    ) -> None:
        """Takes the arguments of `CifarBase`."""
        super().__init__(train_or_test, shuffle, dir, 10, download=download)


class Cifar100(CifarBase):
    """The hundred fine classes of CIFAR-100; see `CifarBase`."""

    def __init__(
        self,
        train_or_test: str,
        shuffle: Optional[bool] = None,
        dir: Optional[PathLike] = None,
        *,
        download: bool = False,
    ) -> None:
        """Takes the arguments of `CifarBase`."""
        super().__init__(train_or_test, shuffle, dir, 100, download=download)
