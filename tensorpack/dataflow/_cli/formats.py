"""The formats of files of datapoints: how each is recognised, read, described and written."""

import itertools
import os
import struct
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from tensorpack.utils.packing.old_values import BadRecord, RefusedRecord, kind_of_old

from ..base import DataFlow
from ..files.csv_file import CSVData
from ..files.hdf5 import HDF5Data, HDF5Serializer, describe_file
from ..files.lmdb_file import LMDBData, LMDBDataPoint, LMDBSerializer
from ..files.npz import NumpySerializer, is_old_npz
from ..files.parquet import ParquetData, ParquetSerializer
from ..files.records import DamagedFile, decode_value, form_of, input_path, refuse_gzip
from ..files.svmlight import SVMLightData
from ..files.tar import TarData, TarSerializer
from ..files.tfrecord import TFRecordBytes, TFRecordData, TFRecordSerializer, masked_crc32c
from ..map import MapData
from . import CommandError


class InputOptions(NamedTuple):
    """How the user wants a file to be read; the defaults stand for what was not given."""

    allow_pickle: bool = False  # of an old file
    paths: Optional[List[str]] = None  # datasets of HDF5, columns of Parquet; all by default
    dtypes: Optional[List[str]] = None  # of the columns of a CSV file, or one for all; text
    no_header: bool = False  # of a CSV file


class Opened(NamedTuple):
    """A flow of the datapoints of a file, facts about them, and whether damage is detected."""

    flow: Any
    facts: Dict[str, str]
    has_checksums: bool = True


class Format(NamedTuple):
    suffixes: Tuple[str, ...]  # of the names of such files, in small letters
    matches: Optional[Callable[[bytes], bool]]  # by the first bytes of a file, if they tell
    open: Callable[[str, InputOptions, int], Opened]  # with the number of records to skip
    save: Optional[Callable[..., int]] = None  # of a flow and a path; and names, with `paths`
    options: Tuple[str, ...] = ()  # those of `InputOptions` that make a difference


_CONTENTS = {
    "": "datapoints of tensorpack",
    "msgpack": "datapoints of tensorpack 0.2, as msgpack",
    "pickle": "datapoints of old tensorpack, as pickles",
}


def _open_lmdb(path: str, options: InputOptions, max_errors: int) -> Opened:
    raw = LMDBData(path, shuffle=False, max_errors=max_errors)  # which checks the file
    kind, is_new = "", raw.lst.is_new()
    if not is_new:
        file = raw.lst.handle
        keys = [key for key in file.keys(3) if not key.startswith(b"__")]
        kind = kind_of_old((file.get(keys[0]) if keys else None) or b"")
        if not kind:
            return Opened(raw, {"contents": "keys and values of another program"}, False)
    flow = LMDBDataPoint(path, False, None, max_errors, False, options.allow_pickle)
    return Opened(flow, {"contents": _CONTENTS[kind]}, is_new)


def _open_tfrecord(path: str, options: InputOptions, max_errors: int) -> Opened:
    first = b""
    try:
        first = next(iter(TFRecordBytes(path)), [b""])[0]
        decode_value(first, False)
    except BadRecord:
        raw = TFRecordBytes(path, max_errors=max_errors)
        return Opened(raw, {"contents": "records of another program"})
    except (DamagedFile, RefusedRecord):  # which says nothing about the others
        pass
    flow = TFRecordData(path, max_errors=max_errors, allow_pickle=options.allow_pickle)
    return Opened(flow, {"contents": _CONTENTS[kind_of_old(first)]})


def _open_npz(path: str, options: InputOptions, max_errors: int) -> Opened:
    flow = NumpySerializer.load(path, shuffle=False, allow_pickle=options.allow_pickle)
    return Opened(flow, {"contents": _CONTENTS["pickle" if is_old_npz(path) else ""]})


def _open_hdf5(path: str, options: InputOptions, max_errors: int) -> Opened:
    version, names, has_checksums = describe_file(path)
    paths = options.paths or names
    if not paths:
        raise CommandError(f"{path} has no dataset whose rows could be datapoints.")
    flow = HDF5Data(path, paths, shuffle=False, in_memory=False, max_errors=max_errors)
    facts = {"version": version or "none", "datasets": ", ".join(paths)}
    return Opened(flow, facts, has_checksums)


def _open_csv(path: str, options: InputOptions, max_errors: int) -> Opened:
    dtypes: Any = options.dtypes or [str]
    flow = CSVData(
        path,
        dtypes=dtypes[0] if len(dtypes) == 1 else dtypes,
        shuffle=False,
        header=not options.no_header,
        delimiter="\t" if suffix_of(path) == ".tsv" else ",",
        max_errors=max_errors,
    )
    return Opened(flow, {"columns": ", ".join(flow.names or ["none"])}, False)


def _open_svmlight(path: str, options: InputOptions, max_errors: int) -> Opened:
    flow = SVMLightData(path, shuffle=False, max_errors=max_errors)
    return Opened(flow, {"features": str(flow.num_features)}, False)


def _open_parquet(path: str, options: InputOptions, max_errors: int) -> Opened:
    flow = ParquetData(path, options.paths, shuffle=False, max_errors=max_errors)
    return Opened(flow, {"columns": ", ".join(flow.lst.keys)}, False)


def _open_tar(path: str, options: InputOptions, max_errors: int) -> Opened:
    return Opened(TarData(path, False, max_errors), {}, False)


def save_file(kind: Format, flow: DataFlow, path: str, names: Optional[List[str]]) -> int:
    """Writes a flow to a file of a format, with names of its columns; returns its length."""
    save: Any = kind.save  # which there is: what has none is no target of `convert`
    if "paths" not in kind.options:
        return save(flow, path)
    flow.reset_state()
    first = next(iter(flow), None)
    if not isinstance(first, (list, tuple, dict)):
        raise CommandError(f"Lists, tuples or dicts have columns, but got {first!r:.80}.")
    keys: List[Any] = list(first) if isinstance(first, dict) else list(range(len(first)))
    width = len(str(len(keys) - 1))  # a reader finds the datasets sorted as text
    names = names or [f"component_{k:0{width}d}" if isinstance(k, int) else str(k) for k in keys]
    if len(names) != len(keys):
        raise CommandError(
            f"There are {len(names)} names in --paths ({', '.join(names)}), but a datapoint has "
            f"{len(keys)} components: {', '.join(map(str, keys))}. Give a name for each."
        )
    numbers, form = itertools.count(), form_of(first)

    def row(datapoint: Any) -> List[Any]:
        number, found = next(numbers), form_of(datapoint)
        if found != form:
            raise CommandError(
                f"Datapoint {number} is {found}, but datapoint 0 is {form}. All rows of such a "
                "file are alike: convert to another format."
            )
        return [datapoint[key] for key in keys]

    return save(MapData(flow, row), path, names)


def _has(magic: bytes, *places: int) -> Callable[[bytes], bool]:
    """Returns whether one of the places has these bytes."""
    return lambda start: any(start.startswith(magic, place) for place in places)


FORMATS: Dict[str, Format] = {
    "LMDB": Format(
        (".lmdb", ".mdb"),
        _has(struct.pack("=I", 0xBEEFC0DE), 16, 24),
        _open_lmdb,
        LMDBSerializer.save,
        ("allow_pickle",),
    ),
    "TFRecord": Format(
        (".tfrecord", ".tfrecords"),
        lambda start: struct.pack("<I", masked_crc32c(start[:8])) == start[8:12],
        _open_tfrecord,
        TFRecordSerializer.save,
        ("allow_pickle",),
    ),
    "npz": Format(
        (".npz",),
        lambda start: start.startswith((b"PK\x03\x04", b"PK\x05\x06")),
        _open_npz,
        NumpySerializer.save,
        ("allow_pickle",),
    ),
    "HDF5": Format(
        (".h5", ".hdf5"),
        _has(b"\x89HDF\r\n\x1a\n", 0, 512, 1024, 2048),
        _open_hdf5,
        HDF5Serializer.save,
        ("paths",),
    ),
    "Parquet": Format(
        (".parquet",), _has(b"PAR1", 0), _open_parquet, ParquetSerializer.save, ("paths",)
    ),
    "tar": Format((".tar",), _has(b"ustar", 257), _open_tar, TarSerializer.save),
    "CSV": Format((".csv", ".tsv"), None, _open_csv, None, ("dtypes", "no_header")),
    "SVMlight": Format((".svm", ".svmlight", ".libsvm"), None, _open_svmlight),
}
KNOWN = ", ".join(f"{name} ({' '.join(each.suffixes)})" for name, each in FORMATS.items())


def suffix_of(path: str) -> str:
    """Returns how the name of a file ends, in small letters, such as `.npz`."""
    return os.path.splitext(path.rstrip(os.sep))[1].lower()


def find_format(path: str) -> str:
    """Returns the name of the format of a file, by its first bytes or else by its suffix."""
    if os.path.isdir(path):
        return "LMDB"
    with open(input_path(path), "rb") as file:
        start = file.read(4096)
    refuse_gzip(path, start)
    found = [name for name, each in FORMATS.items() if each.matches and each.matches(start)]
    found += [name for name, each in FORMATS.items() if suffix_of(path) in each.suffixes]
    if not found:
        raise CommandError(
            f"The format of {path} is not known: it begins with {start[:16]!r}, and its name ends "
            f"with {suffix_of(path)!r}. Known are {KNOWN}."
        )
    if not start:
        raise CommandError(f"{path} is empty.")
    return found[0]


def open_file(path: str, name: str, options: InputOptions, max_errors: int = 0) -> Opened:
    """Opens a file of the format `name`; skips up to `max_errors` damaged records."""
    for option, value in options._asdict().items():
        if value and option not in FORMATS[name].options:
            use = ", ".join(n for n, each in FORMATS.items() if option in each.options)
            use = f"--{option.replace('_', '-')} is for files in {use}"
            raise CommandError(f"{use}, but {path} is {name}. Leave it out.")
    return FORMATS[name].open(path, options, max_errors)
