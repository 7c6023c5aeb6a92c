"""What the datasets share: their parts and published files, and images with labels."""

import functools
import gzip
import io
import os
import tarfile
import zlib
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils._hashing import hash_file
from tensorpack.utils.argtools import log_once
from tensorpack.utils.fs import download as download_file
from tensorpack.utils.fs import get_dataset_path
from tensorpack.utils.optional import require

from ..files.images import ImageRecords
from ..files.records import DamagedFile, PathLike, RecordsFlow
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


class LabelledImages:
    """The datapoints `[image, label]` by index: an image that is a new array each time, and an int.

    `images` are uint8, `labels` integers `[N]` below `classes`, otherwise a `DamagedFile` names
    `path`. With a `scale`, images are divided by it and float32. Both may be set to others.
    """

    _scale = 0

    def __init__(
        self, images: np.ndarray, labels: np.ndarray, classes: int, path: str, scale: int = 0
    ) -> None:
        if not len(labels):
            raise DamagedFile(f"{path} has no images.")
        if labels.max() >= classes:
            found = labels.max()
            raise DamagedFile(f"{path} has the label {found}, but there are {classes} classes.")
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


class UnpackedDataset(RecordsFlow):
    """A dataset of image files in a folder, which has to be unpacked."""

    _URL = ""  # of the archive
    # Returns the paths of the images of a part, below the folder, and their labels.
    _listed: Callable[[str], Tuple[List[str], List[int]]]

    def __init__(
        self, dir: PathLike, name: str, shuffle: Optional[bool] = None, *, max_errors: int = 0
    ) -> None:
        """
        Args:
          dir: the folder.
          name: "train" or "val".
          shuffle: whether each pass has its own order; None for "train" only.
          max_errors: how many images that cannot be read a pass skips, see `RecordsFlow`.
        """
        check_split(name, ("train", "val"))
        self.dir = os.path.abspath(dir)
        files, labels = self._listed(name)
        records = ImageRecords([os.path.join(self.dir, file) for file in files], labels, bgr=True)
        super().__init__(records, name == "train" if shuffle is None else shuffle, max_errors)

    def _lines(self, name: str) -> List[str]:
        path = self._existing(name)
        return lines_of(Path(path).read_bytes(), path)

    def _existing(self, name: str) -> str:
        """Returns the path of a file or folder below the folder."""
        path = os.path.join(self.dir, name)
        if not os.path.exists(path):
            raise FileNotFoundError(
                f"{type(self).__name__} needs {path}: download {self._URL}, unpack it, and give "
                "its folder."
            )
        return path


def check_split(name: str, parts: Sequence[str]) -> None:
    """Raises ValueError unless `name` is one of the parts of a dataset."""
    if name not in parts:
        *others, last = map(repr, parts)
        known = f"{', '.join(others)} and {last}"
        raise ValueError(f"The dataset has the parts {known}, but got {name!r}.")


def mean_of(
    parts: Sequence[str], names: Iterable[str], images_of: Callable[[str], np.ndarray]
) -> np.ndarray:
    """Returns the mean image of some parts of a dataset, float32, in the range of uint8."""
    total, count = np.zeros((), np.int64), 0
    for name in names:
        check_split(name, parts)
        images = images_of(name)
        total = total + images.sum(axis=0, dtype=np.int64)
        count += len(images)
    if not count:
        raise ValueError(f"A mean is of some of {', '.join(map(repr, parts))}, but got {names!r}.")
    return (total / count).astype(np.float32)


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
        path, found = paths[url], os.stat(paths[url])
        if published[url] not in (None, _hash(path, found.st_size, found.st_mtime_ns)):
            log_once(
                f"{path} is not the file of {url}: its SHA-256 is another one. It is used; remove "
                "it to download the published one.",
                "warn",
            )
    return list(paths.values())


@functools.lru_cache(maxsize=32)
def _hash(path: str, size: int, changed: int) -> str:
    """Returns the SHA-256 of a file; computed once for as long as the file is the same."""
    return hash_file(path)[1]


def lines_of(content: bytes, where: str) -> List[str]:
    """Returns the lines of a text that are not empty, without the space around them."""
    lines = content.decode("utf-8", "replace").splitlines()
    found = [line.strip() for line in lines if line.strip()]
    if not found:
        raise DamagedFile(f"{where} is empty.")
    return found


def read_members(path: str, wanted: Callable[[str], bool]) -> Dict[str, bytes]:
    """Returns the content of the files of a compressed archive whose names are `wanted`.

    The whole archive is checked, and nothing is unpacked.
    """
    contents: Dict[str, bytes] = {}
    try:
        with gzip.open(path) as stream:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    if member.isfile() and wanted(member.name):
                        contents[member.name] = archive.extractfile(member).read()  # type: ignore
            while stream.read(1 << 20):  # up to the checksum
                pass
    except (EOFError, OSError, zlib.error, tarfile.TarError) as error:
        raise DamagedFile(f"{path} cannot be unpacked: {error}") from error
    return contents


def read_matlab(path: str, *names: str, content: Optional[bytes] = None) -> Dict[str, Any]:
    """Returns variables of a file of MATLAB's version 5, or of `content` if it is in an archive."""
    matlab = require("scipy.io")
    try:
        file = path if content is None else io.BytesIO(content)
        found = matlab.loadmat(file, variable_names=names)
    except Exception as error:  # whatever the bytes at hand lead scipy to
        raise DamagedFile(f"{path} is not a MATLAB file that scipy reads: {error}") from error
    missing = [name for name in names if name not in found]
    if missing:
        raise DamagedFile(f"{path} has no variable {' and '.join(missing)}.")
    return {name: found[name] for name in names}
