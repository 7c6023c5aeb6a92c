"""Datapoints come back from an `.npz` file as they were, and no damaged byte goes unnoticed."""

import collections
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest

from tensorpack.dataflow import DataFromGenerator, DataFromList
from tensorpack.dataflow.files.npz import NumpySerializer
from tensorpack.dataflow.files.records import DamagedFile
from tests.contracts.dataflow import DataFlowContract, assert_same
from tests.dataflow.flows import Canary

Pair = collections.namedtuple("Pair", "a b")

CASES = {
    "arrays": [[np.full((2, 3), i, np.uint8), np.arange(i, i + 4, dtype=">f4")] for i in range(4)],
    "arrays without axes or elements": [[np.array(i, "i2"), np.zeros((0, 2))] for i in range(3)],
    "scalars": [[np.float32(i), np.int64(-i), np.bool_(i % 2), i, i / 3, i > 1] for i in range(3)],
    "large integers": [[2**63 - 1, 2**64 + i, 2**63 + i] for i in range(2)],
    "text": [["a", np.array(["a", "bc"])], ["\u00e9\0", np.array(["d", "ef"])]],
    "other types and shapes": [[1, np.zeros(2)], [np.int64(1), np.zeros(3)], [None, np.zeros(2)]],
    "trees": [({"a": [1, (2, np.arange(3))]},), ([],)],
    "no components": [{}, {}],
    "dicts": [{"": 1, "a/b": np.zeros((2, 2)), "\u00e9": "x"} for _ in range(3)],
}


def save(datapoints, path):
    NumpySerializer.save(DataFromList(datapoints, shuffle=False), str(path))
    return str(path)


def load(path):
    return list(NumpySerializer.load(path, shuffle=False))


def rewrite(path, contents, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)


def npy(array, **options):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asanyarray(array), **options)
    return buffer.getvalue()


def header(**changes):
    fields = {"format": "tensorpack datapoints", "version": 1, "length": 2, "kinds": ["int"]}
    fields.update(form="list", keys=None)
    fields.update(changes)
    return npy(np.frombuffer(json.dumps(fields).encode(), np.uint8))


class TestNumpySerializer(DataFlowContract):
    length = 5

    @pytest.fixture(autouse=True)
    def file(self, tmp_path):
        datapoints = [[np.full(3, i), i, "x" * i] for i in range(5)]
        self.path = save(datapoints, tmp_path / "five.npz")

    def make_flow(self):
        return NumpySerializer.load(self.path, shuffle=False)


@pytest.mark.parametrize("name", CASES)
def test_datapoints_come_back_as_they_were(tmp_path, name):
    assert_same(load(save(CASES[name], tmp_path / "a.npz")), CASES[name])


def test_numpy_reads_the_arrays_without_pickle(tmp_path):
    images = [np.full((2, 2), i, np.uint8) for i in range(3)]
    path = save([[image, i] for i, image in enumerate(images)], tmp_path / "a.npz")
    with np.load(path, allow_pickle=False) as arrays:
        assert_same(arrays["values_0"], np.stack(images))
        assert_same(arrays["values_1"], np.arange(3))
        fields = json.loads(arrays["header"].tobytes().decode())
    assert fields["version"] == 1 and fields["kinds"] == ["array", "int"]


def test_keys_of_a_dict_may_come_in_another_order(tmp_path):
    loaded = load(save([{"a": 1, "b": 2.0}, {"b": 3.0, "a": 4}], tmp_path / "a.npz"))
    assert_same(loaded, [{"a": 1, "b": 2.0}, {"a": 4, "b": 3.0}])


def test_a_list_that_the_flow_uses_again(tmp_path):
    def datapoints():
        datapoint = [0]
        for datapoint[0] in range(3):
            yield datapoint

    NumpySerializer.save(DataFromGenerator(datapoints), str(tmp_path / "a.npz"))
    assert load(str(tmp_path / "a.npz")) == [[0], [1], [2]]


def test_arrays_are_shared_but_not_pickled_and_cannot_be_written_to(tmp_path):
    flow = NumpySerializer.load(save([[np.zeros(100000)]], tmp_path / "a.npz"))
    ((array,),) = flow
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    assert len(pickle.dumps(flow)) < 10000


@pytest.mark.parametrize(
    "datapoints, error, match",
    [
        ([[1, 2], [1]], ValueError, "another form .*: a list of 1 components, a list of 2"),
        ([{"a": 1}, {"c": 2}], ValueError, "a dict of c, a dict of a"),
        ([], ValueError, "The flow has no datapoints"),
        ([np.zeros(2)], TypeError, "Datapoint 0 is a ndarray"),
        ([{1: 2}], TypeError, "a dict of 1, but .* whose keys are text"),
        ([[1, 2], [1, object()]], TypeError, "Datapoint 1 cannot be written: component 1: "),
        ([Pair(1, 2)], TypeError, "Datapoint 0 is a Pair of 2 .* not of a subclass"),
    ],
)
def test_what_cannot_be_written_leaves_no_file(tmp_path, datapoints, error, match):
    with pytest.raises(error, match=match):
        save(datapoints, tmp_path / "a.npz")
    assert os.listdir(str(tmp_path)) == []


def test_every_flipped_byte_is_noticed_or_harmless(tmp_path):
    datapoints = [[np.arange(3, dtype=np.uint8)]]
    save(datapoints, tmp_path / "a.npz")
    data = (tmp_path / "a.npz").read_bytes()
    noticed, names = 0, 0
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        path = tmp_path / "b.npz"
        path.write_bytes(bytes(damaged))
        try:
            loaded = load(str(path))
        except ValueError as error:
            assert "b.npz" in str(error)
            noticed += 1
            names += "values_0.npy: Bad CRC-32" in str(error)
            continue
        assert_same(loaded, datapoints)  # it was a date in the archive, or the like
    assert noticed > len(data) // 2 and names


def test_other_files(tmp_path):
    path = str(tmp_path / "a.npz")
    np.savez(path, a=np.arange(3))
    with pytest.raises(ValueError, match="was not written by NumpySerializer"):
        load(path)
    values = {"values_0.npy": npy(np.arange(2))}
    rewrite(path, {"header.npy": header(), **values}, zipfile.ZIP_DEFLATED)  # by another program
    assert load(path) == [[0], [1]]
    rewrite(path, {"header.npy": header(version=2), **values})
    with pytest.raises(ValueError, match="version 1 is read, and this is .*'version': 2"):
        load(path)


OLD = {
    "mixed": [[np.arange(k + 1, dtype=np.uint8), k, f"t{k}", {"a": np.ones(2)}] for k in range(3)],
    "no components": [{}, {}],
    "dicts": [{"x": np.arange(3), "y": (k, None)} for k in range(3)],
    "of unequal length": [[1], [1, 2.5], [b"x", "y", np.float32(1)]],
    "taken apart by numpy": [[np.full((2, 3), k), np.full((2, 3), 2 * k)] for k in range(4)],
    "empty": [],
}


@pytest.mark.parametrize("name", OLD)
def test_a_file_of_old_tensorpack(tmp_path, name):
    """It is one compressed array of objects."""
    path = str(tmp_path / "a.npz")
    np.savez_compressed(path, buffer=np.asarray(OLD[name], dtype=object))
    assert_same(load(path), OLD[name])


def test_an_old_file_that_is_damaged(tmp_path):
    path = str(tmp_path / "a.npz")
    objects = npy(np.asarray([[1, "a"], [2, "b"]], dtype=object))
    for wrong in objects[:-3], objects.replace(b"K\x02K\x02\x86", b"K\x02K\x03\x86"):
        rewrite(path, {"buffer.npy": wrong})
        with pytest.raises(DamagedFile, match="a.npz is damaged"):
            load(path)


def test_a_pickle_is_not_run_unless_the_user_trusts_it(tmp_path):
    path, canary = str(tmp_path / "a.npz"), Canary(tmp_path / "ran")
    objects = np.empty(2, object)
    objects[:] = [canary, canary]
    np.savez(path, buffer=objects)  # as files of tensorpack 0.x are
    with pytest.raises(ValueError, match=r"a.npz: It is a pickle that needs \w+.mkdir"):
        load(path)
    rewrite(path, {"header.npy": header(), "values_0.npy": npy(objects)})
    with pytest.raises(ValueError, match="values_0.npy: Object arrays cannot be loaded"):
        load(path)
    frame = np.frombuffer(pickle.dumps([canary]), np.uint8)
    offsets = np.array([0, len(frame), len(frame)])
    contents = {"frames_0.npy": npy(frame), "offsets_0.npy": npy(offsets)}
    rewrite(path, {"header.npy": header(kinds=["frames"]), **contents})
    with pytest.raises(ValueError, match="a.npz, record 0: These .* bytes begin with"):
        load(path)
    assert not (tmp_path / "ran").exists()
    np.savez(path, buffer=np.array([canary], object))
    assert list(NumpySerializer.load(path, allow_pickle=True)) == [None]
    assert (tmp_path / "ran").is_dir()
