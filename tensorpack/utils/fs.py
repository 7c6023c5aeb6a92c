"""Paths, downloads, and the directory of datasets."""

import os
import urllib.request
from typing import Any, BinaryIO, Iterator, Optional
from urllib.parse import unquote, urlsplit

from ._hashing import hash_file
from .argtools import log_once
from .atomic import open_atomic, remove_temporaries
from .progress import get_tqdm

_BLOCK = 1 << 16
_TIMEOUT_SECONDS = 60


def mkdir_p(dirname: str) -> None:
    """Creates a directory and its parents, unless it exists or the name is empty."""
    if dirname:
        os.makedirs(dirname, exist_ok=True)


def normpath(path: str) -> str:
    """Returns a path without redundant parts; an address such as `gs://a/b` is not changed."""
    return path if "://" in path else os.path.normpath(path)


def recursive_walk(rootdir: str) -> Iterator[str]:
    """Yields the paths of all files below a directory, sorted; those in subfolders come last."""
    for folder, subfolders, files in os.walk(rootdir):
        subfolders.sort()
        for name in sorted(files):
            yield os.path.join(folder, name)


def get_dataset_path(*args: str) -> str:
    """Returns an absolute path in the dataset directory; creates nothing.

    The directory is $TENSORPACK_DATASET, or else `tensorpack_data` in the home directory, with one
    warning; `args` are the parts of a path below it.
    """
    root = os.environ.get("TENSORPACK_DATASET")
    if not root:
        root = os.path.join(os.path.expanduser("~"), "tensorpack_data")
        log_once(f"Env var $TENSORPACK_DATASET not set, using {root} for datasets.", "warn")
    return os.path.join(os.path.abspath(root), *args)


def download(
    url: str,
    dir: str,
    filename: Optional[str] = None,
    expect_size: Optional[int] = None,
    sha256: Optional[str] = None,
) -> str:
    """Downloads a file, with a progress bar, and returns its path.

    An existing file is kept if its expected size or hash is given and matches.

    Args:
      url: its address. Give the hash for one that is not `https:`.
      dir: the directory to write to; created if missing.
      filename: the name of the file; by default the last part of the address.
      expect_size: its size in bytes, if known.
      sha256: the hexadecimal hash of its content, if known.

    Raises:
      OSError: the file cannot be fetched or written.
    """
    filename = filename or os.path.basename(unquote(urlsplit(url).path))
    path = os.path.join(dir, filename)
    can_verify = expect_size is not None or sha256 is not None
    if can_verify and os.path.isfile(path) and _mismatch(path, expect_size, sha256) is None:
        return path
    mkdir_p(dir)
    remove_temporaries(dir or ".")
    with open_atomic(path) as file:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response:
            _copy(response, file, filename)
        file.flush()
        mismatch = _mismatch(file.name, expect_size, sha256)
        if mismatch is not None:
            raise ValueError(f"What came from {url} {mismatch}.")
    return path


def _copy(response: Any, file: BinaryIO, title: str) -> None:
    length = response.headers.get("Content-Length")
    total = int(length) if length else None
    with get_tqdm(total=total, desc=title, unit="B", unit_scale=True) as bar:
        for block in iter(lambda: response.read(_BLOCK), b""):
            file.write(block)
            bar.update(len(block))
        if total is not None and bar.n != total:
            raise OSError(f"The connection ended after {bar.n} of {total} bytes of {title}.")


def _mismatch(path: str, expect_size: Optional[int], sha256: Optional[str]) -> Optional[str]:
    size = os.path.getsize(path)
    if expect_size is not None and size != expect_size:
        return f"has {size} bytes instead of {expect_size}"
    if sha256 is not None:
        actual = hash_file(path)[1]
        if actual != sha256.lower():
            return f"has SHA-256 {actual} instead of {sha256}"
    return None
