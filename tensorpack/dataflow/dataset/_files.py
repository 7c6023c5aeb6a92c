"""What the datasets share: their parts and published files, and images with labels."""

import gzip
import io
import os
import tarfile
import zlib
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils._hashing import hash_file
from tensorpack.utils.argtools import log_once
from tensorpack.utils.fs import download as download_file
from tensorpack.utils.fs import get_dataset_path
from tensorpack.utils.optional import require

from ..files.images import ImageRecords
from ..files.records import DamagedFile, PathLike
from ..raw import DataFromList

TRAIN_OR_TEST = ("train", "test")

Folder = Optional[PathLike]


class PublishedDataset(DataFromList):
    """A dataset whose published files are read where they lie, and held in memory.

    A subclass names its parts and its folder; the arguments are described in `dataset`.
    """

    _PARTS: Sequence[str] = TRAIN_OR_TEST
    _FOLDER = ""  # below $TENSORPACK_DATASET
    _read: Callable[[str], Any]  # returns the datapoints of a part, by index

    def __init__(
        self,
        name: str,
        data_dir: Folder = None,
        shuffle: Optional[bool] = True,
        *,
        download: bool = False,
    ) -> None:
        check_split(name, self._PARTS)
        given = get_dataset_path(self._FOLDER) if data_dir is None else data_dir
        self._directory, self._download = os.path.abspath(given), download
        super().__init__(self._read(name), name == "train" if shuffle is None else shuffle)

    def _find(self, published: Mapping[str, Optional[str]]) -> List[str]:
        return find_files(type(self).__name__, self._directory, published, self._download)

    def _read_archive(
        self, url: str, sha256: str, folder: str, wanted: Callable[[str], bool]
    ) -> Dict[str, bytes]:
        """Returns the files whose names are `wanted`, of the folder if the archive is unpacked."""
        root = Path(self._directory)
        if not (root / folder).is_dir():
            return read_members(self._find({url: sha256})[0], wanted)
        paths = [each for each in (root / folder).glob("**/*") if each.is_file()]
        names = [each.relative_to(root).as_posix() for each in paths]
        return {name: (root / name).read_bytes() for name in names if wanted(name)}


class LabelledImages:
    """The datapoints `[image, label]` by index: an image that is a new array each time, and an int.

    `labels` are integers `[N]` from 0, below `classes`, otherwise a `DamagedFile` names `path`.
    With a `scale`, images are divided by it and float32. Both may be set to others.
    """

    _scale = 0

    def __init__(
        self, images: np.ndarray, labels: np.ndarray, classes: int, path: str, scale: int = 0
    ) -> None:
        if not 0 < len(labels) == len(images):
            raise DamagedFile(f"{path} has {len(labels)} labels of {len(images)} images.")
        if labels.min() < 0 or labels.max() >= classes:
            found = f"labels from {labels.min()} to {labels.max()}"
            raise DamagedFile(f"{path} has {found}, but there are {classes} classes.")
        self.images, self.labels, self._scale = images, labels, scale

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: Any) -> List[Any]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        image = self.images[index]
        image = np.divide(image, self._scale, dtype=np.float32) if self._scale else image.copy()
        return [image, int(self.labels[index])]


class LabelledDataset(PublishedDataset):
    """A dataset of `LabelledImages`, with the attributes that scripts read and set."""

    @property
    def images(self) -> np.ndarray:
        """All images, uint8 `[N, ...]`; may be set."""
        return self.lst.images

    @images.setter
    def images(self, images: np.ndarray) -> None:
        self._labelled().images = images

    @property
    def labels(self) -> np.ndarray:
        """All labels, integers `[N]`; may be set."""
        return self.lst.labels

    @labels.setter
    def labels(self, labels: np.ndarray) -> None:
        self._labelled().labels = labels

    def _labelled(self) -> LabelledImages:
        if "lst" not in vars(self):  # a script has a constructor of its own
            self.lst = LabelledImages.__new__(LabelledImages)
        return self.lst


class UnpackedDataset(DataFromList):
    """A dataset of image files in a folder, which has to be unpacked."""

    _URL = ""  # of the archive
    # Returns the paths of the images of a part, below the folder, and their labels.
    _listed: Callable[[str], Tuple[List[str], List[int]]]

    def __init__(self, dir: PathLike, name: str, shuffle: Optional[bool] = None) -> None:
        """Takes the folder, "train" or "val", and whether each pass has its own order."""
        check_split(name, ("train", "val"))
        self.dir = os.path.abspath(dir)
        files, labels = self._listed(name)
        images = ImageRecords([os.path.join(self.dir, file) for file in files], labels, bgr=True)
        super().__init__(images, name == "train" if shuffle is None else shuffle)

    def _lines(self, name: str) -> List[str]:
        path = os.path.join(self.dir, name)
        if not os.path.exists(path):
            raise FileNotFoundError(
                f"{type(self).__name__} needs {path}: download {self._URL}, unpack it, and give "
                "its folder."
            )
        return lines_of(Path(path).read_bytes(), path)


def check_split(name: str, parts: Sequence[str]) -> None:
    """Raises ValueError unless `name` is one of the parts of a dataset."""
    if name not in parts:
        *others, last = map(repr, parts)
        known = f"{', '.join(others)} and {last}"
        raise ValueError(f"The dataset has the parts {known}, but got {name!r}.")


def mean_of(
    parts: Sequence[str], names: Sequence[str], images_of: Callable[[str], np.ndarray]
) -> np.ndarray:
    """Returns the mean image of some parts of a dataset, float32, in the range of uint8."""
    for name in names:
        check_split(name, parts)
    return np.concatenate([images_of(name) for name in names]).mean(axis=0).astype(np.float32)


def find_files(
    name: str, directory: str, published: Mapping[str, Optional[str]], download: bool
) -> List[str]:
    """Returns the paths of published files in a directory; missing ones are downloaded if told to.

    `published` has the address of each file and its SHA-256, or None if that is not known. Another
    file is used with a warning if it was there; a ValueError is raised if it was downloaded.
    """
    paths = {url: os.path.join(directory, url.rpartition("/")[2]) for url in published}
    missing = [url for url, path in paths.items() if not os.path.isfile(path)]
    if missing and not download:
        raise FileNotFoundError(
            f"{name} needs files that are not there: put {' and '.join(missing)} "
            f"into {directory}, or pass download=True once to have it done. The argument `dir` "
            "(`data_dir`, `meta_dir`), or $TENSORPACK_DATASET, names another place."
        )
    for url in missing:
        try:
            download_file(url, directory, sha256=published[url])
        except OSError as error:
            raise OSError(
                f"{url} cannot be downloaded: {error}. Get it in another way and put it into "
                f"{directory}."
            ) from error
    for url in (each for each in published if each not in missing):
        if published[url] not in (None, hash_file(paths[url])[1]):
            log_once(
                f"{paths[url]} is not the file of {url}: its SHA-256 is another one. It is used; "
                "remove it to download the published one.",
                "warn",
            )
    return list(paths.values())


def lines_of(content: bytes, where: str) -> List[str]:
    """Returns the lines of a text that are not empty, without the space around them."""
    lines = content.decode("utf-8", "replace").splitlines()
    found = [line.strip() for line in lines if line.strip()]
    if not found:
        raise DamagedFile(f"{where} is empty.")
    return found


def read_members(path: str, wanted: Callable[[str], bool]) -> Dict[str, bytes]:
    """Returns the files of a compressed archive whose names are `wanted`; nothing is unpacked."""
    try:
        with gzip.open(path) as file:
            archive = tarfile.open(fileobj=io.BytesIO(file.read()))  # all, up to the checksum
        found = [each for each in archive if each.isfile() and wanted(each.name)]
        return {each.name: archive.extractfile(each).read() for each in found}  # type: ignore
    except (EOFError, OSError, zlib.error, tarfile.TarError) as error:
        raise DamagedFile(f"{path} cannot be unpacked: {error}") from error


def read_matlab(path: str, *names: str, content: Optional[bytes] = None) -> List[np.ndarray]:
    """Returns variables of a file of MATLAB's version 5, or of `content` if it is in an archive."""
    matlab = require("scipy.io")
    file = path if content is None else io.BytesIO(content)
    try:
        found = matlab.loadmat(file, variable_names=names)
        return [found[name] for name in names]
    except Exception as error:  # whatever the bytes at hand lead scipy to
        raise DamagedFile(
            f"{path} is not a MATLAB file of {' and '.join(names)} that scipy reads: {error!r}"
        ) from error
