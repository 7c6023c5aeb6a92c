"""HDF5 files of any program are read, ours have checksums, and a damaged row is named."""

import os

import numpy as np
import pytest

from tensorpack.dataflow import DataFromGenerator, DataFromList
from tensorpack.dataflow.files.hdf5 import HDF5Data, HDF5Serializer
from tensorpack.dataflow.files.records import DamagedFile
from tests.contracts.dataflow import DataFlowContract, assert_same

h5py = pytest.importorskip("h5py")

PATHS = ["train/image", "train/label"]


def datapoints_of(count):
    return [[np.full((2, 3), i, np.float32), np.int64(-i)] for i in range(count)]


def save(datapoints, path, data_paths=PATHS):
    HDF5Serializer.save(DataFromList(datapoints, shuffle=False), str(path), data_paths)
    return str(path)


def load(path, data_paths=PATHS, **options):
    flow = HDF5Data(path, data_paths, shuffle=False, **options)
    datapoints = list(flow)
    flow.close()
    return datapoints


def foreign(path, **datasets):
    """A file of another program."""
    with h5py.File(str(path), "w") as file:
        for name, data in datasets.items():
            file[name] = data
    return str(path)


class FromFile(DataFlowContract):
    length = 5
    options = {}

    @pytest.fixture(autouse=True)
    def file(self, tmp_path):
        self.path = save(datapoints_of(5), tmp_path / "five.h5")
        self.flows = []
        yield
        for flow in self.flows:
            flow.close()

    def make_flow(self):
        self.flows.append(HDF5Data(self.path, PATHS, **self.options))
        return self.flows[-1]


class TestInMemory(FromFile):
    options = {"shuffle": False}


class TestInFile(FromFile):
    options = {"shuffle": False, "in_memory": False}


class TestInFileShuffled(FromFile):
    options = {"in_memory": False}
    deterministic = False


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize(
    "first",
    [
        np.zeros((2, 3), np.uint8),
        np.zeros(4, ">i2"),
        np.bool_(True),
        np.array([1 + 2j], np.complex64),
    ],
    ids=lambda value: str(value.dtype),
)
def test_datapoints_come_back_as_they_were(tmp_path, first, in_memory):
    datapoints = [[first], [first.copy()]]
    assert_same(
        load(save(datapoints, tmp_path / "a", ["x"]), ["x"], in_memory=in_memory), datapoints
    )


def test_numbers_of_python_become_those_of_numpy(tmp_path):
    keys = ["b", "i", "f"]
    path = save([[True, 1, 1.5], [False, -2, 0.1]], tmp_path / "a", keys)
    _, loaded = HDF5Serializer.load(path, keys, shuffle=False)
    assert_same(loaded, [np.bool_(False), np.int64(-2), np.float64(0.1)])


@pytest.mark.parametrize("count", [1, 1023, 1024, 3000])
def test_passes_of_any_length_are_written(tmp_path, count, capsys):
    flow = DataFromGenerator(lambda: ([i, np.float32(i)] for i in range(count)))
    HDF5Serializer.save(flow, str(tmp_path / "a"), PATHS)
    assert f"{count}/?" in capsys.readouterr().err
    loaded = load(str(tmp_path / "a"))
    assert [int(i) for i, _ in loaded] == list(range(count))
    assert [float(x) for _, x in loaded] == list(range(count))


def test_files_of_other_programs(tmp_path):
    path = foreign(tmp_path / "a", x=np.arange(6).reshape(3, 2), name=np.array([b"a", b"b", b"c"]))
    for in_memory in True, False:
        loaded = load(path, ["name", "x"], in_memory=in_memory)
        assert [(bytes(name), x.tolist()) for name, x in loaded] == [
            (b"a", [0, 1]),
            (b"b", [2, 3]),
            (b"c", [4, 5]),
        ]
    assert load(foreign(tmp_path / "none", x=np.zeros((0, 2))), ["x"]) == []
    with h5py.File(str(tmp_path / "packed"), "w") as file:
        file.create_dataset("x", data=np.zeros((100, 10)), compression="gzip")
    assert len(load(tmp_path / "packed", ["x"])) == 100


@pytest.mark.parametrize("in_memory", [True, False])
def test_datasets_that_cannot_be_read(tmp_path, in_memory):
    path = foreign(tmp_path / "a", one=3, three=np.arange(3))
    with h5py.File(path, "a") as file:
        file.create_group("group")["x"] = [1]
    for keys, error, match in [
        (["group"], KeyError, "no dataset 'group' with rows. .*h5ls -r"),
        (["one"], KeyError, "no dataset 'one' with rows"),
        (["three", "group/x"], ValueError, "'three' has 3 rows, 'group/x' has 1 row"),
    ]:
        with pytest.raises(error, match=match):
            load(path, keys, in_memory=in_memory)


@pytest.mark.parametrize(
    "datapoints, error, match",
    [
        ([], ValueError, "The flow has no datapoints"),
        ([[1]], TypeError, "Datapoint 0 is a list of 1 comp.* for each of .*label"),
        ([{"a": 1, "b": 2}], TypeError, "Datapoint 0 is a dict"),
        ([[1, "a"]], TypeError, "No conversion path"),
        ([[1, np.ma.array([1, 2], mask=[0, 1])]], TypeError, "Datapoint 0 has a mask"),
        ([[1, np.zeros(2)], [1, np.zeros(3)]], ValueError, r"Datapoint 1 .* float64 \(3,\), but"),
        ([[1, 2], [1, 2.0]], ValueError, r"Datapoint 1 \('train/label'\) is float64 \(\), but"),
    ],
)
def test_what_cannot_be_written_leaves_no_file(tmp_path, datapoints, error, match):
    with pytest.raises(error, match=match):
        save(datapoints, tmp_path / "a")
    assert os.listdir(str(tmp_path)) == []


def damaged_file(path, count=200):
    """A file whose second chunk of images, with rows 64 to 127, is damaged."""
    save([[np.full(512, i, np.int64), i] for i in range(count)], path)
    with open(str(path), "r+b") as file:
        place = file.read().index(np.full(512, 100, np.int64).tobytes())
        file.seek(place)
        file.write(b"?")
    return str(path)


def test_a_damaged_chunk_is_named(tmp_path):
    path = damaged_file(tmp_path / "a")
    for in_memory in True, False:
        with pytest.raises(DamagedFile, match="a, row 64: dataset 'train/image' is damaged: "):
            load(path, in_memory=in_memory)


def test_damaged_rows_are_skipped_up_to_a_limit(tmp_path, capsys):
    path = damaged_file(tmp_path / "a")
    loaded = load(path, in_memory=False, max_errors=64)
    assert [int(label) for _, label in loaded] == [*range(64), *range(128, 200)]
    assert "Skipped 64 of at most 64: " in capsys.readouterr().out
    with pytest.raises(ValueError, match="row 127.* has skipped 63 already"):
        load(path, in_memory=False, max_errors=63)


def test_a_file_cut_off(tmp_path):
    path = save(datapoints_of(3), tmp_path / "a")
    data = (tmp_path / "a").read_bytes()
    for size in [0, 1, 7, 8, 40, len(data) // 2, len(data) - 1]:
        (tmp_path / "a").write_bytes(data[:size])
        with pytest.raises(ValueError, match="a is damaged, or no HDF5 file: "):
            load(path)
