"""What the datasets share: their parts and published files, and images with labels."""

import os
import re
import tarfile
import tempfile
import zlib
from copy import copy
from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils.fs import download as download_file
from tensorpack.utils.fs import get_dataset_path

from ..files.records import DamagedFile, PathLike
from ..raw import DataFromList

TRAIN_OR_TEST = ("train", "test")

_UPWARDS = re.compile(r"^/|(^|/)\.\.(/|$)")  # a name that leads out of a folder

Folder = Optional[PathLike]


class PublishedDataset(DataFromList):
    """A dataset whose published files are read where they lie, and held in memory.

    A subclass names its parts and its folder; the arguments are described in `dataset`.
    """

    _PARTS: Sequence[str] = TRAIN_OR_TEST
    _FOLDER = ""  # below $TENSORPACK_DATASET
    _read: Callable[[str], Any]  # returns the datapoints of a part, or what `_set` takes

    def __init__(
        self,
        name: str,
        data_dir: Folder = None,
        shuffle: Optional[bool] = True,
        *,
        download: bool = False,
    ) -> None:
        check_split(name, self._PARTS)
        folder = get_dataset_path(self._FOLDER) if data_dir is None else data_dir
        self._directory, self._download = os.path.abspath(folder), download
        self._set(self._read(name))
        self.shuffle = name == "train" if shuffle is None else shuffle

    def _set(self, datapoints: Any) -> None:
        self.lst = datapoints

    def _reader(self) -> Callable[[int], List[Any]]:
        return lambda index: list(map(copy, self.lst[index]))

    def _find(self, published: Mapping[str, Optional[str]]) -> List[str]:
        return find_files(type(self).__name__, self._directory, published, self._download)

    def _unpack(self, url: str, sha256: str, folder: str) -> Path:
        """Returns the folder that is in an archive, which is unpacked once."""
        if not os.path.isdir(os.path.join(self._directory, folder)):
            unpack(*self._find({url: sha256}))
        return Path(self._directory, folder)


class LabelledDataset(PublishedDataset):
    """A dataset of two arrays, uint8 or float32 `[N, ...]` and integers `[N]`, which may be set."""

    _ARRAYS = ("images", "labels")  # the attributes
    _SHAPE: Tuple[int, ...]  # of an image

    def _set(self, arrays: Any) -> None:
        vars(self).update(zip(self._ARRAYS, arrays))

    @property
    def lst(self) -> np.ndarray:  # type: ignore[override]
        """The labels."""
        return getattr(self, self._ARRAYS[1])

    def _reader(self) -> Callable[[int], List[Any]]:
        images, labels = (getattr(self, name) for name in self._ARRAYS)
        return lambda index: [images[index].reshape(self._SHAPE).copy(), int(labels[index])]


def check_split(name: str, parts: Sequence[str]) -> None:
    """Raises ValueError unless `name` is one of the parts of a dataset."""
    if name not in parts:
        *texts, last = map(repr, parts)
        raise ValueError(f"The dataset has the parts {', '.join(texts)} and {last}, not {name!r}.")


def mean_of(names: Sequence[str], images_of: Callable[[str], np.ndarray]) -> np.ndarray:
    """Returns the mean image of some parts of a dataset, float32, in the range of uint8."""
    return np.concatenate([images_of(name) for name in names]).mean(axis=0).astype(np.float32)


def find_files(
    name: str, directory: str, published: Mapping[str, Optional[str]], download: bool
) -> List[str]:
    """Returns the paths of published files in a directory, and downloads missing ones if asked.

    `published` has the address of each file and its SHA-256, or None if that is not known.
    """
    paths = [os.path.join(directory, url.rpartition("/")[2]) for url in published]
    for url, path in zip(published, paths):
        if os.path.isfile(path):
            continue
        if not download:
            raise FileNotFoundError(
                f"{name} needs {path}: put {url} there, or pass download=True once. The argument "
                "`dir` (`data_dir`, `meta_dir`), or $TENSORPACK_DATASET, names another folder."
            )
        download_file(url, directory, sha256=published[url])
    return paths


def unpack(path: str) -> None:
    """Unpacks the files of a compressed archive beside it; those that are there stay."""
    directory = os.path.dirname(path)
    with tempfile.TemporaryDirectory(dir=directory) as new:
        try:
            with tarfile.open(path) as archive:
                # of Python 3.12; older ones would write where a name leads to
                vars(archive)["extraction_filter"] = getattr(tarfile, "data_filter", None)
                files = [file for file in archive if file.isfile()]
                archive.extractall(new, [f for f in files if not _UPWARDS.search(f.name)])
        except (EOFError, OSError, zlib.error, tarfile.TarError) as error:
            raise DamagedFile(f"{path} cannot be unpacked: {error}") from error
        for name in os.listdir(new):
            if not os.path.exists(os.path.join(directory, name)):
                os.rename(os.path.join(new, name), os.path.join(directory, name))
