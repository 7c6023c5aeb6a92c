"""The formats that `convert` writes, and how a file takes the place of another one."""

import contextlib
import itertools
import os
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from tensorpack.utils.atomic import fsync_path

from ..base import DataFlow
from ..hdf5 import HDF5Serializer
from ..lmdb import LMDBSerializer
from ..map import SelectComponent
from ..npz import NumpySerializer
from ..tfrecord import TFRecordSerializer
from .errors import CommandError
from .source import suffix_of

__all__ = ["Target", "find_target", "write_to"]

_Save = Callable[[DataFlow, str, Optional[List[str]]], None]


class Target(NamedTuple):
    """A file to be written.

    Attributes:
      name: of the format.
      path: of the file.
      save: takes a flow, a path, and the names of the components or None.
    """

    name: str
    path: str
    save: _Save


def _save_lmdb(flow: DataFlow, path: str, names: Optional[List[str]]) -> None:
    LMDBSerializer.save(flow, path)


def _save_npz(flow: DataFlow, path: str, names: Optional[List[str]]) -> None:
    NumpySerializer.save(flow, path)


def _save_tfrecord(flow: DataFlow, path: str, names: Optional[List[str]]) -> None:
    TFRecordSerializer.save(flow, path)


def _save_hdf5(flow: DataFlow, path: str, names: Optional[List[str]]) -> None:
    keys = _keys_of(flow)
    if names is None:
        # A number alone would not be found again by its order: names are sorted as text.
        names = [f"component_{key}" if isinstance(key, int) else str(key) for key in keys]
    if len(names) != len(keys):
        raise CommandError(
            f"There are {len(names)} names in --paths ({', '.join(names)}), but a datapoint has "
            f"{len(keys)} components: {', '.join(map(str, keys))}. Give a name for each."
        )
    HDF5Serializer.save(SelectComponent(flow, keys), path, names)


_FORMATS: Dict[str, Tuple[str, _Save]] = {
    ".lmdb": ("LMDB", _save_lmdb),
    ".mdb": ("LMDB", _save_lmdb),
    ".tfrecord": ("TFRecord", _save_tfrecord),
    ".tfrecords": ("TFRecord", _save_tfrecord),
    ".npz": ("npz", _save_npz),
    ".h5": ("HDF5", _save_hdf5),
    ".hdf5": ("HDF5", _save_hdf5),
}


def find_target(path: str, force: bool) -> Target:
    """Returns what is to be written, by the suffix of its name.

    Args:
      path: of the file; a folder that exists stands for `data.mdb` in it.
      force: whether there may be such a file.

    Raises:
      CommandError: the suffix is not known, or there is such a file.
    """
    suffix = suffix_of(path)
    if suffix not in _FORMATS:
        raise CommandError(
            f"{path} has the suffix {suffix!r}, which says nothing of a format to write. Let it "
            f"end with one of {', '.join(_FORMATS)}."
        )
    name, save = _FORMATS[suffix]
    if os.path.isdir(path):
        if save is not _save_lmdb:
            raise CommandError(f"{path} is a folder. Give the name of a file.")
        path = os.path.join(path, "data.mdb")
    if os.path.lexists(path) and not force:
        raise CommandError(f"{path} exists already. Give another name, or --force to replace it.")
    return Target(name, path, save)


def write_to(target: Target, flow: DataFlow, names: Optional[List[str]], force: bool) -> None:
    """Writes a flow to a file, which appears, or is replaced, when it is whole.

    Args:
      target: the file.
      flow: what to write; one pass of it.
      names: of the components, for HDF5; None to take their keys or positions.
      force: whether a file of this name is replaced.

    Raises:
      FileExistsError: there is such a file, and it is not to be replaced.
      OSError, TypeError, ValueError: as by the writer of the format.
    """
    if not force:
        target.save(flow, target.path, names)
        return
    with _in_place_of(target.path) as path:
        target.save(flow, path, names)


@contextlib.contextmanager
def _in_place_of(path: str) -> Iterator[str]:
    """Yields another name in the same folder, which becomes `path` at the end of the block."""
    folder, name = os.path.split(os.path.abspath(path))
    aside = os.path.join(folder, f".{name}.{os.getpid()}-{os.urandom(4).hex()}.new")
    try:
        yield aside
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(aside)
        raise
    fsync_path(folder)


def _keys_of(flow: DataFlow) -> List[Any]:
    """The keys of the components, by the first datapoint; positions if it is a list."""
    flow.reset_state()
    for datapoint in itertools.islice(flow, 1):
        if isinstance(datapoint, dict):
            return list(datapoint)
        if isinstance(datapoint, (list, tuple)):
            return list(range(len(datapoint)))
        raise CommandError(
            f"A datapoint is a {type(datapoint).__name__}, but the datasets of an HDF5 file need a "
            "list, tuple or dict."
        )
    raise CommandError("There is no datapoint to write.")
