"""Files that the commands read and write, whole and damaged, and what is printed of them."""

import contextlib
import importlib.util
import os
import struct

import numpy as np
import pytest

from tensorpack.dataflow import (
    HDF5Data,
    HDF5Serializer,
    LMDBSerializer,
    NumpySerializer,
    ParquetSerializer,
    TFRecordSerializer,
)
from tensorpack.dataflow.files.tfrecord import masked_crc32c
from tests.dataflow.flows import flow_of

needs_h5py = pytest.mark.skipif(not importlib.util.find_spec("h5py"), reason="needs h5py")
KINDS = {".npz": NumpySerializer, ".tfrecord": TFRecordSerializer, ".lmdb": LMDBSerializer}
needs_lmdb = pytest.mark.skipif(not importlib.util.find_spec("lmdb"), reason="needs lmdb")


def numbers(count):
    return [[i, np.full((2, 3), i, np.float32)] for i in range(count)]


def save(path, datapoints):
    """Writes a file of the format that its name says."""
    path = str(path)
    if path.endswith((".h5", ".parquet")):
        keys = [f"component_{index}" for index in range(len(datapoints[0]))]
        kind = HDF5Serializer if path.endswith(".h5") else ParquetSerializer
        kind.save(flow_of(datapoints), path, keys)
    else:
        KINDS[os.path.splitext(path)[1]].save(flow_of(datapoints), path)
    return path


def load(path):
    """The datapoints of a file, in their order."""
    path = str(path)
    suffix = os.path.splitext(path)[1]
    if suffix == ".h5":
        flow = HDF5Data(path, ["component_0", "component_1"], shuffle=False)
    else:
        flow = KINDS[suffix].load(path, **{} if suffix == ".tfrecord" else {"shuffle": False})
    with contextlib.closing(flow):
        return list(flow)


def facts(out):
    """The two columns that are printed, as a dictionary."""
    lines = [line.split("  ", 1) for line in out.splitlines() if "  " in line]
    return {parts[0].strip(): parts[1].strip() for parts in lines}


EVERYWHERE = [
    pytest.param(".npz"),
    pytest.param(".tfrecord"),
    pytest.param(".lmdb", marks=needs_lmdb),
    pytest.param(".h5", marks=needs_h5py),
]
NAMES = {".npz": "npz", ".tfrecord": "TFRecord", ".lmdb": "LMDB", ".h5": "HDF5"}


def record(data):
    """A record of a TFRecord file."""
    parts = struct.pack("<Q", len(data)), data
    return b"".join(part + struct.pack("<I", masked_crc32c(part)) for part in parts)


def places_of_records(data):
    place = 0
    while place < len(data):
        yield place
        place += 16 + struct.unpack_from("<Q", data, place)[0]


def change(path, place, byte=b"?"):
    with open(path, "r+b") as file:
        file.seek(place)
        file.write(byte)
