"""Rows of Parquet files of any program are read; a damaged group is named and can be skipped."""

import os
import pickle

import numpy as np
import pytest

from tensorpack.dataflow import DamagedFile, DataFromList, ParquetData, ParquetSerializer
from tensorpack.dataflow.files import parquet as module
from tests.contracts.dataflow import DataFlowContract, assert_same

pyarrow = pytest.importorskip("pyarrow", minversion="14")
parquet = pytest.importorskip("pyarrow.parquet")

NAMES = ["x", "label"]


def datapoints_of(count):
    return [[np.full(100, i, np.float32), np.int64(-i)] for i in range(count)]


def save(datapoints, path, names=NAMES):
    ParquetSerializer.save(DataFromList(datapoints, shuffle=False), path, names)
    return str(path)


def load(path, *columns, **options):
    return list(ParquetData(path, columns or None, shuffle=False, **options))


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    monkeypatch.setattr(module, "_GROUP_ROWS", 4)


class TestParquetData(DataFlowContract):
    length = 10

    @pytest.fixture(autouse=True)
    def file(self, tmp_path):
        self.path = save(datapoints_of(10), tmp_path / "ten.parquet")

    def make_flow(self):
        return ParquetData(self.path, shuffle=False)


class TestShuffled(TestParquetData):
    deterministic = False

    def make_flow(self):
        return ParquetSerializer.load(self.path)


def test_rows_come_back_in_groups(tmp_path):
    path = save(datapoints_of(10), tmp_path / "a")
    assert parquet.ParquetFile(path).metadata.num_row_groups == 3
    assert_same(load(path), datapoints_of(10))
    assert sorted(int(label) for _, label in ParquetData(path)) == list(range(-9, 1))
    assert load(path, "label") == [[-i] for i in range(10)]
    assert len(pickle.dumps(ParquetData(path))) < 3000


def test_files_of_other_programs(tmp_path):
    path = str(tmp_path / "a")
    columns = {
        "number": pyarrow.array([1, None], pyarrow.int32()),
        "text": ["a", "\u00e9"],
        "bytes": [b"", None],
        "flag": [True, False],
        "vector": pyarrow.array([[1, 2], [3, 4]], pyarrow.list_(pyarrow.int8(), 2)),
        "large": pyarrow.array([[5], [6, 7]], pyarrow.large_list(pyarrow.int8())),
        "holes": [[1, None], None],
        "some": pyarrow.array([[1], None], pyarrow.list_(pyarrow.int8())),
        "tree": [{"a": 1}, {"a": 2}],
    }
    parquet.write_table(pyarrow.table(columns), path)
    first, second = load(path)
    vectors = [np.array(each, np.int8) for each in ([1, 2], [3, 4], [5], [6, 7])]
    some, number = np.array([1], np.int8), np.int32(1)
    assert_same(first[:5], [number, "a", b"", np.bool_(True), vectors[0]])
    assert_same(first[5:], [vectors[2], [1, None], some, {"a": 1}])
    assert_same(second[:5], [None, "\u00e9", None, np.bool_(False), vectors[1]])
    assert_same(second[5:], [vectors[3], None, None, {"a": 2}])
    assert load(path, "text", "number") == [["a", 1], ["\u00e9", None]]
    with pytest.raises(KeyError, match=r"a has the columns \['number', .*, but \['x'\] are asked"):
        load(path, "x")


@pytest.mark.parametrize(
    "values, expected",
    [
        ([1.5] * 4 + [None], None),
        ([None] * 13 + [2.5] * 5, None),
        ([None] * 9, None),
        ([1.5] * 4 + [2], [1.5] * 4 + [2.0]),
        ([np.int64(1)] * 4 + [np.int8(2), None], None),
        ([[0.5]] * 4 + [[], None], [[0.5]] * 4 + [[], None]),
    ],
)
def test_groups_have_the_types_of_the_first_with_values(tmp_path, values, expected):
    path = save([[value, 1] for value in values], tmp_path / "a")
    found = [x for x, _ in load(path)]
    assert [x if x is None else np.asarray(x).tolist() for x in found] == [
        x if x is None else np.asarray(x).tolist() for x in (expected or values)
    ]
    about = parquet.ParquetFile(path).metadata
    assert {about.row_group(i).num_rows for i in range(about.num_row_groups - 1)} <= {4}


def test_a_damaged_group_is_named_and_skipped(tmp_path, capsys):
    path = save(datapoints_of(10), tmp_path / "a")
    data = bytearray((tmp_path / "a").read_bytes())
    place = data.index(np.float32([5]).tobytes())
    data[place] ^= 1
    (tmp_path / "a").write_bytes(bytes(data))
    with pytest.raises(DamagedFile, match="a, record 4: its group 1 cannot be read: .*CRC"):
        load(path)
    found = load(path, max_errors=4)
    assert [-label for _, label in found] == [0, 1, 2, 3, 8, 9]
    assert "Skipped 4 of at most 4" in capsys.readouterr().out


def test_files_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        ParquetData(tmp_path / "missing")
    path = save(datapoints_of(3), tmp_path / "a")
    data = (tmp_path / "a").read_bytes()
    for kept in 0, 3, len(data) // 2, len(data) - 1:
        (tmp_path / "a").write_bytes(data[:kept])
        with pytest.raises(DamagedFile, match="a is not a whole Parquet file"):
            load(path)


@pytest.mark.parametrize(
    "datapoints, error, match",
    [
        ([], ValueError, "no datapoints"),
        (
            [[1]],
            ValueError,
            r"Datapoint 0 is a list of 1 .* one component for each of \['x', 'label'\]",
        ),
        ([{"x": 1, "label": 2}], TypeError, "Datapoint 0 is a dict of label, x, but needs"),
        ([[np.zeros((2, 2)), 1]], ValueError, "Datapoint 0 .* 'x': .*1-dimensional"),
        ([[1, 1]] * 6 + [[1, object()]], ValueError, "Datapoint 6 .* 'label': Could not convert"),
        ([[1.5, 1]] * 3 + [["a", 1]], ValueError, "Datapoint 3 .* 'x': Could not convert 'a'"),
        ([[2**63, 1]], OverflowError, "Datapoint 0 .* 'x': .*too large"),
        ([[i, i] for i in range(5)] + [[0.5, 1]], TypeError, "Datapoint 5 .*double, but int64 bef"),
        ([[np.float32(1), 1]] * 4 + [[0.1, 1]], TypeError, "Datapoint 4 .*double, but float bef"),
        ([[0.5, 1]] * 4 + [[2**53 + 1, 1]], ValueError, "Datapoint 4 .* 'x': Integer value"),
        ([[[1], 1]] * 4 + [[[1.5], 1]], TypeError, "Datapoint 4 .*list<item: double>, but list"),
        ([[[], 1]] * 4 + [[[1.5], 1]], ValueError, "Datapoint 4 .* 'x': .*null"),
        ([["a", 1]] * 4 + [[b"a", 1]], TypeError, "Datapoint 4 .* binary, but string before"),
        ([["a", 1], [b"a", 1]], TypeError, "Datapoint 1 .* text in some datapoints and bytes"),
        ([[1, 1], [{1}, 1]], TypeError, "Datapoint 1 .* masked array or a set"),
        (
            [[np.ma.array([1.0], mask=[1]), 1]],
            TypeError,
            r"'x': it is a masked .*\.filled\(value\)",
        ),
        ([[None, 1]] * 5 + [[1.5, 1], ["a", 1]], ValueError, "Datapoint 6 .* 'x': Could not"),
        ([[{"a": 1}, 1], [{"b": 1}, 1]], TypeError, "Datapoint 1 .* different keys"),
    ],
)
def test_what_cannot_be_written_leaves_no_file(tmp_path, datapoints, error, match):
    with pytest.raises(error, match=match):
        save(datapoints, tmp_path / "a")
    assert os.listdir(str(tmp_path)) == []
