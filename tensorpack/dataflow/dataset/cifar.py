"""CIFAR-10 and CIFAR-100: 32 x 32 colour images, from the archives of the binary or Python version.

The formats are described at https://www.cs.toronto.edu/~kriz/cifar.html: a record is the label (of
CIFAR-100 a coarse and a fine one) and the red, green and blue planes. The files of the Python
version are pickled dicts of lists and arrays, which are read without running code.
"""

import os
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from tensorpack.utils.packing.old_values import decode_old

from . import _files
from ._files import TRAIN_OR_TEST, DamagedFile, Folder, LabelledDataset, LabelledImages

_ADDRESS = "https://www.cs.toronto.edu/~kriz/"
_IMAGE = (3, 32, 32)
_FILES = {  # by the number of classes and the part, without the ending
    10: {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]},
    100: {"train": ["train"], "test": ["test"]},
}


class _Version(NamedTuple):
    archive: str
    folder: str  # in the archive
    names: str  # the file with the names of the classes
    label_bytes: int  # the last one counts
    ending: str = ".bin"  # of the other files
    key: str = ""  # of the Python version: how the keys of labels and their names begin


_VERSIONS = {  # by the number of classes
    10: [
        _Version("cifar-10-binary.tar.gz", "cifar-10-batches-bin", "batches.meta.txt", 1),
        _Version("cifar-10-python.tar.gz", "cifar-10-batches-py", "batches.meta", 1, "", "label"),
    ],
    100: [
        _Version("cifar-100-binary.tar.gz", "cifar-100-binary", "fine_label_names.txt", 2),
        _Version("cifar-100-python.tar.gz", "cifar-100-python", "meta", 1, "", "fine_label"),
    ],
}
_SHA256 = {
    "cifar-10-binary.tar.gz": "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    "cifar-10-python.tar.gz": "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
    "cifar-100-binary.tar.gz": "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
    "cifar-100-python.tar.gz": "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
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
        if cifar_classnum not in _VERSIONS:
            raise ValueError(f"There are CIFAR-10 and CIFAR-100, but got {cifar_classnum}.")
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
        name = self._version().names
        return _files.lines_of(self._read_files([name])[name], f"{name} of {self._directory}")

    def get_per_pixel_mean(self, names: Sequence[str] = TRAIN_OR_TEST) -> np.ndarray:
        """Returns the mean image of some parts of the dataset, float32 `[32, 32, 3]` in [0, 255].

        To evaluate on the test set, take `["train"]`.
        """

        def images_of(name: str) -> np.ndarray:
            own = name == self.train_or_test and isinstance(self.lst, LabelledImages)
            return self.images if own else self._read(name).images

        return _files.mean_of(TRAIN_OR_TEST, names, images_of)

    def get_per_channel_mean(self, names: Sequence[str] = TRAIN_OR_TEST) -> np.ndarray:
        """Returns the mean of each channel, float32 `[3]`; see `get_per_pixel_mean`."""
        return self.get_per_pixel_mean(names).mean(axis=(0, 1))

    def _version(self) -> _Version:
        """Returns the version whose folder, or else archive, is there; the binary one first."""
        versions = _VERSIONS[self.cifar_classnum]
        there = os.listdir(self._directory) if os.path.isdir(self._directory) else []
        found = [each for each in versions if each.folder in there]
        found += [each for each in versions if each.archive in there]
        return [*found, *versions][0]

    def _read(self, part: str) -> LabelledImages:
        version = self._version()
        names = [name + version.ending for name in _FILES[self.cifar_classnum][part]]
        contents = self._read_files(names)
        size = version.label_bytes + int(np.prod(_IMAGE))
        for name in names:
            if len(contents[name]) % size:
                raise DamagedFile(
                    f"{name} of {self._directory} has {len(contents[name])} bytes, which is no "
                    f"multiple of a record's {size}."
                )
        records = np.frombuffer(b"".join(contents.values()), np.uint8).reshape(-1, size)
        labels = records[:, version.label_bytes - 1].copy()
        planes = records[:, version.label_bytes :].reshape((-1, *_IMAGE))
        images = np.ascontiguousarray(planes.transpose(0, 2, 3, 1))
        where = f"{', '.join(names)} of {self._directory}"
        return LabelledImages(images, labels, self.cifar_classnum, where)

    def _read_files(self, names: Sequence[str]) -> Dict[str, bytes]:
        """Returns the content of files, from the unpacked folder if they are all there."""
        version = self._version()
        paths = {name: os.path.join(self._directory, version.folder, name) for name in names}
        if all(map(os.path.isfile, paths.values())):
            contents = {name: Path(path).read_bytes() for name, path in paths.items()}
        else:
            (path,) = self._find({_ADDRESS + version.archive: _SHA256[version.archive]})
            wanted = {f"{version.folder}/{name}": name for name in names}
            found = _files.read_members(path, wanted.__contains__)
            missing = [each for each in wanted if each not in found]
            if missing:
                raise DamagedFile(f"{path} has no {', '.join(missing)}. Is it the published one?")
            contents = {name: found[each] for each, name in wanted.items()}
        return {name: self._as_binary(name, content) for name, content in contents.items()}

    def _as_binary(self, name: str, content: bytes) -> bytes:
        """Returns what the binary version has in the place of a file of either version."""
        key = self._version().key
        if not key:
            return content
        try:
            found = decode_old(content)
            if name == self._version().names:
                return "\n".join(found[f"{key}_names"]).encode()
            labels = np.frombuffer(bytes(list(found[f"{key}s"])), np.uint8)[:, np.newaxis]
            records = np.hstack([labels, found["data"].reshape(len(labels), -1)])
            return records.astype(np.uint8, casting="safe").tobytes()
        except Exception as error:  # whatever is in the place of lists and arrays
            raise DamagedFile(f"{name} of {self._directory}: {error}") from error


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
