"""Files that the library wrote at commit dd9d8767 are read, and written again byte for byte."""

import io
from pathlib import Path

import numpy as np
import pytest

from tensorpack.dataflow import LMDBSerializer, NumpySerializer, TFRecordSerializer
from tensorpack.utils.packing.npz import read_npz
from tensorpack.utils.serialize import dump_hashed, dumps, load_hashed, loads
from tests.utils.frames import assert_same_bits
from tests.utils.stored_values import DATAPOINTS, NAN, VALUES, WEIGHTS

DATA = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("copy", [True, False])
def test_a_frame_of_every_kind_of_value(copy):
    stored = (DATA / "values.frame").read_bytes()
    assert dumps(VALUES) == stored
    assert_same_bits(loads(stored, copy=copy), VALUES)
    assert dumps(NAN) == dumps(loads(dumps(NAN)))  # the bits of a NaN


def test_the_state_of_a_run():
    stored = (DATA / "run" / "model-6.state").read_bytes()
    state = load_hashed(np.frombuffer(bytearray(stored), np.uint8))
    assert state["format"] == 2 and len(state["run"]["callback_names"]) == 13
    written = io.BytesIO()
    dump_hashed(state, written)
    assert written.getvalue() == stored


FORMATS = {
    "datapoints.lmdb": ("lmdb", LMDBSerializer),
    "datapoints.npz": ("msgpack", NumpySerializer),
    "datapoints.tfrecord": ("google_crc32c", TFRecordSerializer),
}


@pytest.mark.parametrize("name", FORMATS)
def test_files_of_datapoints(name):
    module, serializer = FORMATS[name]
    pytest.importorskip(module)
    options = {} if serializer is TFRecordSerializer else {"shuffle": False}
    flow = serializer.load(str(DATA / name), **options)
    flow.reset_state()
    assert_same_bits(list(flow), DATAPOINTS)


def test_weights():
    found = read_npz(str(DATA / "weights.npz"))
    assert_same_bits(found, {name: np.asarray(array) for name, array in WEIGHTS.items()})
