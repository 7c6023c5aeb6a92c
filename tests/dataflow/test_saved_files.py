"""A file of any format is there whole or not at all, and takes the place of no other."""

import os

import pytest

from tensorpack.dataflow import (
    DataFromGenerator,
    HDF5Serializer,
    LMDBSerializer,
    MapData,
    MultiProcessRunnerZMQ,
    MultiThreadRunner,
    NumpySerializer,
    TFRecordSerializer,
)
from tests.dataflow.flows import ResetsCounted, numbers

FORMATS = {
    "hdf5": ("h5py", lambda flow, path: HDF5Serializer.save(flow, path, ["x"])),
    "lmdb": ("lmdb", LMDBSerializer.save),
    "npz": ("msgpack", NumpySerializer.save),
    "tfrecord": ("google_crc32c", TFRecordSerializer.save),
}


@pytest.fixture(params=FORMATS)
def save(request, tmp_path):
    module, save_as = FORMATS[request.param]
    pytest.importorskip(module)
    return lambda flow, name="a": save_as(flow, str(tmp_path / name))


def test_an_existing_file_is_left_alone(save, tmp_path):
    (tmp_path / "a").write_bytes(b"precious")
    with pytest.raises(FileExistsError, match="a exists"):
        save(numbers(3))
    with pytest.raises(FileNotFoundError, match="No such file.*nowhere"):
        save(numbers(3), "nowhere/a")
    assert (tmp_path / "a").read_bytes() == b"precious" and os.listdir(str(tmp_path)) == ["a"]


def test_a_mixture_is_not_written(save, tmp_path):
    mixtures = MultiProcessRunnerZMQ(numbers(50), 2), MultiThreadRunner(lambda: numbers(50), 5, 2)
    for flow in mixtures:
        with pytest.raises(ValueError, match="with 2 workers is a mixture.*MultiProcessMapData"):
            save(MapData(flow, list))
    assert list(tmp_path.iterdir()) == []
    flow = MultiProcessRunnerZMQ(numbers(5), 1, start_method="fork")
    assert save(flow) in (None, 5)
    flow.close()


def test_a_flow_that_fails_leaves_no_file(save, tmp_path):
    def broken():
        yield [1]
        raise ZeroDivisionError("from the flow")

    with pytest.raises(ZeroDivisionError, match="from the flow"):
        save(DataFromGenerator(broken))
    assert os.listdir(str(tmp_path)) == []


def test_the_flow_is_reset_before_it_is_saved(save):
    flow = ResetsCounted([[1]])
    save(flow)
    assert flow.resets == 1
