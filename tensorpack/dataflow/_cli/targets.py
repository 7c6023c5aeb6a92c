"""The formats that `convert` writes, and how a file takes the place of another one."""

import contextlib
import itertools
import os
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from tensorpack.utils.atomic import fsync_path

from .._lmdb.write import write_lmdb
from ..base import DataFlow, ProxyDataFlow
from ..hdf5 import HDF5Serializer
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
    write_lmdb(flow, path)


def _save_npz(flow: DataFlow, path: str, names: Optional[List[str]]) -> None:
    NumpySerializer.save(flow, path)


def _save_tfrecord(flow: DataFlow, path: str, names: Optional[List[str]]) -> None:
    TFRecordSerializer.save(flow, path)


def _save_hdf5(flow: DataFlow, path: str, names: Optional[List[str]]) -> None:
    first = _first_of(flow)
    keys = _keys_of(first)
    if names is None:
        names = _names_of(keys)
    if len(names) != len(keys):
        raise CommandError(
            f"There are {len(names)} names in --paths ({', '.join(names)}), but a datapoint has "
            f"{len(keys)} components: {', '.join(map(str, keys))}. Give a name for each."
        )
    HDF5Serializer.save(_Alike(flow, first, keys), path, names)


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


def _first_of(flow: DataFlow) -> Any:
    flow.reset_state()
    for datapoint in itertools.islice(flow, 1):
        if isinstance(datapoint, (list, tuple, dict)):
            return datapoint
        raise CommandError(
            f"A datapoint is a {type(datapoint).__name__}, but the datasets of an HDF5 file need a "
            "list, tuple or dict."
        )
    raise CommandError("There is no datapoint to write.")


def _keys_of(datapoint: Any) -> List[Any]:
    """The keys of the components; positions if it is a list."""
    return list(datapoint) if isinstance(datapoint, dict) else list(range(len(datapoint)))


def _names_of(keys: List[Any]) -> List[str]:
    """Names of datasets. A reader finds them sorted as text, so numbers are of one width."""
    width = max((len(str(key)) for key in keys if isinstance(key, int)), default=1)
    return [f"component_{key:0{width}d}" if isinstance(key, int) else str(key) for key in keys]


class _Alike(ProxyDataFlow):
    """Makes lists of datapoints, and refuses those that are not of the form of the first one."""

    def __init__(self, ds: DataFlow, first: Any, keys: List[Any]) -> None:
        super().__init__(ds)
        self._type, self._keys, self._described = type(first), keys, _described(first)

    def __iter__(self) -> Iterator[List[Any]]:
        return self._pass(iter(self.ds))

    def _pass(self, datapoints: Iterator[Any]) -> Iterator[List[Any]]:
        for index, datapoint in enumerate(datapoints):
            same = type(datapoint) is self._type and len(datapoint) == len(self._keys)
            if same and isinstance(datapoint, dict):
                same = datapoint.keys() == set(self._keys)
            if not same:
                raise CommandError(
                    f"Datapoint {index} is {_described(datapoint)}, but datapoint 0 is "
                    f"{self._described}. The rows of the datasets of an HDF5 file are alike: "
                    "convert to another format."
                )
            yield [datapoint[key] for key in self._keys]


def _described(datapoint: Any) -> str:
    kind = type(datapoint).__name__
    if isinstance(datapoint, dict):
        return f"a {kind} of {', '.join(sorted(map(str, datapoint)))}"
    if isinstance(datapoint, (list, tuple)):
        return f"a {kind} of {len(datapoint)} components"
    return f"of type {kind}"
