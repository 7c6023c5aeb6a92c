"""What the datasets share: their published files, and images with labels by index."""

import functools
import gzip
import os
import tarfile
import zlib
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import numpy as np

from tensorpack.utils.argtools import log_once
from tensorpack.utils.fs import download as download_file
from tensorpack.utils.untrusted import hash_untrusted

from ..files.records import DamagedFile, PathLike
from ..raw import DataFromList

TRAIN_OR_TEST = ("train", "test")
_MOST_BYTES = 1 << 28  # of an archive that is unpacked; the largest published one has 186 MB


class LabelledImages:
    """The datapoints `[image, label]` by index: an image that is a new array each time, and an int.

    Args:
      images: uint8, the first axis counts them.
      labels: uint8 `[N]`.
      scale: None to yield uint8; else images are divided by it and float32.
    """

    def __init__(
        self, images: np.ndarray, labels: np.ndarray, scale: Optional[float] = None
    ) -> None:
        self.images, self.labels = images, labels
        self._scale = scale

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> List[Any]:
        image = self.images[index]
        if self._scale is None:
            image = image.copy()
        else:
            image = np.divide(image, self._scale, dtype=np.float32)
        return [image, int(self.labels[index])]


class LabelledFlow(DataFromList):
    """A flow over `LabelledImages`, with the attributes that scripts read."""

    @property
    def images(self) -> np.ndarray:
        """All images, uint8; the first axis counts them."""
        return self.lst.images

    @property
    def labels(self) -> np.ndarray:
        """All labels, uint8 `[N]`."""
        return self.lst.labels


def check_split(name: str, parts: Sequence[str] = TRAIN_OR_TEST) -> None:
    """Raises ValueError unless `name` is one of the parts of a dataset."""
    if name not in parts:
        *others, last = map(repr, parts)
        known = f"{', '.join(others)} and {last}"
        raise ValueError(f"The dataset has the parts {known}, but got {name!r}.")


def check_labels(labels: np.ndarray, classes: int, path: str) -> None:
    """Raises DamagedFile unless there are labels, each less than the number of classes."""
    if not len(labels):
        raise DamagedFile(f"{path} has no images.")
    if labels.max() >= classes:
        raise DamagedFile(f"{path} has the label {labels.max()}, but there are {classes} classes.")


def find_files(
    name: str, directory: PathLike, published: Mapping[str, Optional[str]], download: bool
) -> List[str]:
    """Returns the paths of published files in a directory.

    A file whose content is not the published one is used all the same, with a warning.

    Args:
      name: of the dataset, for messages.
      directory: where the files should be.
      published: the address of each file to its SHA-256, or None if that is not known.
      download: whether to download missing ones.

    Raises:
      ValueError: what came is not the published file.
    """
    directory = os.path.abspath(directory)
    paths = {url: os.path.join(directory, url.rpartition("/")[2]) for url in published}
    missing = [url for url, path in paths.items() if not os.path.isfile(path)]
    if missing and not download:
        raise FileNotFoundError(
            f"{name} needs files that are not there: put {' and '.join(missing)} "
            f"into {directory}, or pass download=True once to have it done. The argument `dir`, or "
            "$TENSORPACK_DATASET, names another place."
        )
    for url, path in paths.items():
        if url in missing:
            _download(url, directory, published[url])
        elif published[url] not in (None, _hash(path)):
            log_once(
                f"{path} is not the file of {url}: its SHA-256 is another one. It is used; remove "
                "it to download the published one.",
                "warn",
            )
    return list(paths.values())


def read_file(path: str) -> bytes:
    """Returns the content of a file."""
    with open(path, "rb") as file:
        return file.read()


class _Bounded:
    """Reads a stream up to the most bytes that an archive has."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream, self._left = stream, _MOST_BYTES

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise OSError(f"it has more than {_MOST_BYTES} bytes, which no published one has")
        return data


def read_members(path: str, wanted: Callable[[str], bool]) -> Dict[str, bytes]:
    """Returns the content of files of a compressed archive, and checks the whole archive.

    Args:
      path: of the archive. Nothing is unpacked.
      wanted: is given the name of each file.

    Raises:
      DamagedFile: it cannot be unpacked, or has more than any published one.
    """
    contents: Dict[str, bytes] = {}
    try:
        with gzip.open(path, "rb") as file:
            stream: Any = _Bounded(file)
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for member in archive:
                    if member.isfile() and wanted(member.name):
                        contents[member.name] = archive.extractfile(member).read()
            while stream.read(1 << 20):  # up to the checksum
                pass
    except (EOFError, OSError, zlib.error, tarfile.TarError) as error:
        raise DamagedFile(f"{path} cannot be unpacked: {error}") from error
    return contents


def _hash(path: str) -> str:
    found = os.stat(path)
    return _hash_of_version(path, found.st_size, found.st_mtime_ns)


@functools.lru_cache(maxsize=32)
def _hash_of_version(path: str, size: int, changed: int) -> str:
    """Returns the SHA-256 of a file; once for as long as the file is the same."""
    return hash_untrusted(path)[1]


def _download(url: str, directory: str, sha256: Optional[str]) -> None:
    try:
        download_file(url, directory, sha256=sha256)
    except OSError as error:
        raise OSError(
            f"{url} cannot be downloaded: {error}. Get it in another way and put it into "
            f"{directory}."
        ) from error
