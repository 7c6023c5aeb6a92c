"""Values of old versions are read as data alone; what else is in a pickle is refused."""

import collections
import pickle

import msgpack
import numpy as np
import pytest

from tensorpack.dataflow.files.lmdb_file import LMDBData, LMDBDataPoint, LMDBSerializer
from tests.contracts.dataflow import assert_same
from tests.dataflow.flows import Canary
from tests.dataflow.lmdb_files import write_raw
from tests.dataflow.old_bytes import pack_of_2017
from tests.tiers import first_fast


def open_old_lmdb(path, allow_pickle, **options):
    return LMDBDataPoint(path, shuffle=False, allow_pickle=allow_pickle, **options)


def test_a_list_of_keys_of_2017(tmp_path, capsys):
    """It has the order in which they were written, which is not that of the file."""
    keys = [b"%d" % number for number in range(30)]
    items = [(key, pack_of_2017([int(key)])) for key in keys]
    path = write_raw(tmp_path, [*items, (b"__keys__", pack_of_2017(keys))])
    flow = LMDBDataPoint(path, shuffle=False)
    assert list(flow) == [[number] for number in range(30)]
    assert "WRN" not in capsys.readouterr().out


def test_a_file_with_a_pickled_list_of_keys_is_converted(tmp_path, capsys):
    """It has a record that is no datapoint."""
    keys = [b"2", b"10", b"1"]
    items = [(key, pickle.dumps([int(key)], 2)) for key in keys]
    items += [(b"__keys__", pickle.dumps(keys, 2)), (b"__len__", pickle.dumps(3, 2))]
    path = write_raw(tmp_path / "old", items)
    flow = open_old_lmdb(path, False)
    assert list(pickle.loads(pickle.dumps(flow))) == list(flow) == [[2], [10], [1]]
    assert len(flow) == 3
    new = str(tmp_path / "new")
    assert "WRN" not in capsys.readouterr().out
    LMDBSerializer.save(flow, new, write_frequency=2)
    assert f"3 datapoints of LMDBDataPoint are in {new}." in capsys.readouterr().out
    assert list(LMDBSerializer.load(new, shuffle=False)) == [[2], [10], [1]]


PICKLED = [
    [1, "text", b"bytes", b"", 2.5, None, True, 1j, 2**80, {3, 4}, frozenset([1])],
    {"image": np.arange(24, dtype=np.uint8).reshape(2, 3, 4), 5: (np.float32(1.5), [])},
    [np.arange(6.0).reshape(2, 3).T, np.array(["a", "bcd"]), np.zeros((0, 2)), np.arange(9)[::2]],
    [np.arange(5, dtype=">i2"), np.array(True), np.bool_(True), np.array([[{"a": 1}]], object)],
    [collections.OrderedDict([("b", np.ones(2)), ("a", [np.ones(1)])]), {(1, "a"): 2}],
]


@pytest.mark.parametrize("protocol", first_fast(range(2, pickle.HIGHEST_PROTOCOL + 1), 2))
def test_an_old_file_of_pickles(tmp_path, protocol):
    items = [(b"%08d" % i, pickle.dumps(dp, protocol)) for i, dp in enumerate(PICKLED)]
    path = write_raw(tmp_path / "old", items)
    for allow in False, True:
        assert_same(list(open_old_lmdb(path, allow)), PICKLED)
    assert_same(list(LMDBSerializer.load(path, shuffle=False)), PICKLED)
    assert_same(list(LMDBDataPoint(LMDBData(path, shuffle=False))), PICKLED)


def test_code_in_a_file_never_runs(tmp_path, capsys):
    canary = tmp_path / "canary"
    pickled = pickle.dumps([Canary(canary)])
    items = [(b"0", pickle.dumps([5])), (b"1", pickled), (b"__keys__", pickled)]
    items.append((b"2", array_of_2017(kind=b"O", type="|O", data=pickled)))
    path = write_raw(tmp_path / "old", items)
    datapoints = iter(open_old_lmdb(path, False, max_errors=9))
    assert next(datapoints) == [5] and "all its keys are read" in capsys.readouterr().out
    for key in "12":
        match = rf"key b'{key}': It is a pickle that needs \w+.mkdir"
        with pytest.raises(ValueError, match=match):
            list(LMDBDataPoint(LMDBData(path, shuffle=False, keys=[key]), max_errors=9))
    assert not canary.exists()
    list(LMDBDataPoint(path, False, ["1"], allow_pickle=True))  # the user trusts it
    assert canary.is_dir()


def test_an_old_file_of_msgpack(tmp_path):
    datapoints = [
        [1, "text", b"bytes", None, 2.5, np.float32(1.5), 1 + 2j],
        {"image": np.arange(6, dtype=np.uint8).reshape(2, 3), "nd": True, b"nd": 3},
        [np.arange(4, dtype=">f8"), np.array(["a", "bcd"]), np.zeros((0, 2), bool)],
        [[np.arange(3)] for _ in range(20)],
    ]
    items = [(b"%d" % i, pack_of_2017(dp)) for i, dp in enumerate(datapoints)]
    flow = LMDBDataPoint(write_raw(tmp_path / "old", items), shuffle=False)
    loaded = list(flow)
    assert_same(loaded, datapoints)
    loaded[1]["image"][:] = 0


def array_of_2017(**changes):
    parts = {b"nd": True, b"type": "<f4", b"kind": b"", b"shape": [2], b"data": bytes(8)}
    parts.update({name.encode(): value for name, value in changes.items()})
    return msgpack.packb([parts], use_bin_type=True)
