"""Pickles of plain values are read without running code; others are an error."""

import collections
import pickle

import numpy as np
import pytest

from tensorpack.utils.packing.old_values import BadRecord, RefusedRecord, decode_old
from tests.contracts.dataflow import assert_same
from tests.dataflow.flows import Canary
from tests.dataflow.old_bytes import pickle_of_python_2

VALUES = [
    [1, -1, 2**40, 2.5, True, None, "text", b"bytes", 1j, {1, "a"}, frozenset([2])],
    {"image": np.arange(12, dtype=np.uint8).reshape(3, 4), 5: (np.float32(1), np.bool_(True))},
    [np.arange(6, dtype=">i4").reshape(2, 3).T, np.array(["ab", "c"]), np.zeros((2, 0))],
    [
        np.array([{"W": np.ones(2)}, None, [1]], object),
        np.dtype("<U3"),
        collections.OrderedDict(a=[1], b=2),
    ],
]
OF_PYTHON_2 = {
    "data": np.arange(12, dtype=np.uint8).reshape(3, 4),
    "labels": [1, 2, 2**40],
    "name": "caf\xe9",
    "objects": np.array([{"W": 1}, "x"], object),
}


def head(data, protocol=2):
    return b"\x80" + bytes([protocol]) + data


def test_what_python_2_pickled():
    assert_same(decode_old(pickle_of_python_2(OF_PYTHON_2)), OF_PYTHON_2)


ARRAY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R(K\x01"
TEXT = b"cnumpy\ndtype\nU\x02%sK\x00K\x01\x87R(K\x03U\x01%sNNNK\x00K\x00K\x00tb"
HOSTILE = {
    "a call": (b"cos\nsystem\nX\x04\x00\x00\x00true\x85R.", r"needs os.system"),
    "a name": (b"X\x02\x00\x00\x00osX\x06\x00\x00\x00system\x93.", "needs os.system"),
    "the extension registry": (b"\x82\x01.", "extension code 1"),
    "an array of pointers": (
        ARRAY + b"K\x01\x85" + TEXT % (b"O8", b"|") + b"\x89C\x08AAAAAAAAtb.",
        "cannot reshape",
    ),
    "no end": (b"]", "damaged"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_hostile_is_an_error(name, monkeypatch):
    data, reason = HOSTILE[name]
    monkeypatch.setattr(pickle, "loads", None)
    with pytest.raises((BadRecord, RefusedRecord), match=reason):
        decode_old(head(data))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_what_is_cut_off_is_an_error(protocol):
    for value in VALUES:
        data = pickle.dumps(value, protocol)
        for size in range(2, len(data)):
            with pytest.raises(BadRecord):
                decode_old(data[:size])


def test_msgpack_of_2017_with_objects(tmp_path):
    """They were pickled: `dumps` of numpy's arrays."""
    msgpack = pytest.importorskip("msgpack")

    def packed(data):
        parts = {b"nd": True, b"type": "|O", b"kind": b"O", b"shape": [2], b"data": data}
        return msgpack.packb([parts], use_bin_type=True)

    array = np.array([[1, 2], {"a": 3}], object)
    assert_same(decode_old(packed(array.dumps())), [array])
    with pytest.raises(RefusedRecord, match="needs .*mkdir"):
        decode_old(packed(pickle.dumps(Canary(tmp_path / "ran"))))
    with pytest.raises(RefusedRecord, match="needs .*mkdir"):
        decode_old(packed(pickle.dumps(Canary(tmp_path / "ran"))), trusted=True)


def test_what_is_trusted_is_unpickled(tmp_path):
    counter = collections.Counter("aab")
    assert decode_old(pickle.dumps(counter, 2), trusted=True) == counter
    with pytest.raises(BadRecord, match="no_such_module"):
        decode_old(head(b"cno_such_module\nName\n."), trusted=True)
