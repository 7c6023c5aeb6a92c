"""What the datasets share: their published files, and images with labels by index."""

import os
from typing import Any, Dict, List, Optional

import numpy as np

from tensorpack.utils.argtools import log_once
from tensorpack.utils.fs import download as download_file
from tensorpack.utils.untrusted import hash_untrusted

from .._files import DamagedFile, PathLike

TRAIN_OR_TEST = ("train", "test")


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


def check_split(name: str) -> None:
    """Raises ValueError unless `name` is "train" or "test"."""
    if name not in TRAIN_OR_TEST:
        raise ValueError(f"A dataset has the parts 'train' and 'test', but got {name!r}.")


def check_labels(labels: np.ndarray, classes: int, path: str) -> None:
    """Raises DamagedFile unless there are labels, each less than the number of classes."""
    if not len(labels):
        raise DamagedFile(f"{path} has no images.")
    if labels.max() >= classes:
        raise DamagedFile(f"{path} has the label {labels.max()}, but there are {classes} classes.")


def find_files(
    flow: Any, directory: PathLike, published: Dict[str, str], download: bool
) -> List[str]:
    """Returns the paths of published files in a directory.

    A file whose content is not the published one is used all the same, with a warning.

    Args:
      flow: the dataset, for messages.
      directory: where the files should be.
      published: the address of each file to its SHA-256.
      download: whether to download missing ones.

    Raises:
      FileNotFoundError: some are missing; the message says what to put where.
      OSError: one cannot be downloaded.
      ValueError: what came is not the published file.
    """
    directory = os.fspath(directory)
    paths = {url: os.path.join(directory, url.rpartition("/")[2]) for url in published}
    missing = [url for url, path in paths.items() if not os.path.isfile(path)]
    if missing and not download:
        raise FileNotFoundError(
            f"{type(flow).__name__} needs files that are not there: put {' and '.join(missing)} "
            f"into {directory}, or pass download=True once to have it done. The argument `dir`, or "
            "$TENSORPACK_DATASET, names another place."
        )
    for url, path in paths.items():
        if url in missing:
            _download(url, directory, published[url])
        elif hash_untrusted(path)[1] != published[url]:
            log_once(
                f"{path} is not the file of {url}: its SHA-256 is another one. It is used; remove "
                "it to download the published one.",
                "warn",
            )
    return list(paths.values())


def _download(url: str, directory: str, sha256: str) -> None:
    try:
        download_file(url, directory, sha256=sha256)
    except OSError as error:
        raise OSError(
            f"{url} cannot be downloaded: {error}. Get it in another way and put it into "
            f"{directory}."
        ) from error
