"""Pickles of plain values are read without running code; hostile ones are an error, and soon."""

import collections
import os
import pickle
import random
import resource
import struct
import sys
import time

import numpy as np
import pytest

from tensorpack.utils.packing.old_values import BadRecord, RefusedRecord, decode_old
from tests.contracts.dataflow import assert_same
from tests.dataflow.flows import Canary
from tests.dataflow.old_bytes import pack_of_2017, pickle_of_python_2
from tests.utils.frames import limit_memory
from tests.utils.test_serialize_fuzz import damage

GROWTH_BYTES = 64 << 20
PLAIN = (type(None), bool, int, float, complex, str, bytes, bytearray, set, frozenset)
VALUES = [
    [1, -1, 2**40, 2.5, True, None, "text", b"bytes", 1j, {1, "a"}, frozenset([2])],
    {"image": np.arange(12, dtype=np.uint8).reshape(3, 4), 5: (np.float32(1), np.bool_(True))},
    [np.arange(6, dtype=">i4").reshape(2, 3).T, np.array(["ab", "c"]), np.zeros((2, 0))],
    [np.array([{"W": np.ones(2)}, None, [1]], object), collections.OrderedDict(a=[1], b=2)],
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


def nested(opcode):
    """Thirty tuples, each with the one before it twice; 2**30 in all."""
    return b"K\x01" + b"".join(b"q%c" % n + b"h%c" % n + b"\x86" for n in range(30)) + opcode


ARRAY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R(K\x01"
TEXT = b"cnumpy\ndtype\nU\x02%sK\x00K\x01\x87R(K\x03U\x01%sNNNK\x00K\x00K\x00tb"
F8 = TEXT % (b"f8", b"<")
HOSTILE = {
    "a call": (b"cos\nsystem\nX\x04\x00\x00\x00true\x85R.", r"needs os.system"),
    "a name": (b"X\x02\x00\x00\x00osX\x06\x00\x00\x00system\x93.", "needs os.system"),
    "an attribute": (b"X\x05\x00\x00\x00numpyX\x0c\x00\x00\x00ndarray.view\x93.", "needs numpy.nd"),
    "the extension registry": (b"\x82\x01.", "EXT1"),
    "a persistent id": (b"Nq\x00Q.", "BINPERSID"),
    "an old class": (b"(Nicollections\nCounter\n.", "INST"),
    "a new object": (b"cbuiltins\nobject\n)\x81.", "needs builtins.object"),
    "a state of a list": (b"]}b.", "in a wrong place"),
    "a function as a value": (b"c_codecs\nencode\n.", "in a wrong place"),
    "a class as a value": (b"cnumpy\nndarray\n.", "in a wrong place"),
    "an array without a state": (ARRAY[:-3] + b".", "in a wrong place"),
    "a huge memo": (b"Nr\xff\xff\xff\xff.", None),
    "a huge frame": (b"\x95\xff\xff\xff\xff\xff\xff\xff\x7fN.", None),
    "huge bytes": (b"B\xff\xff\xff\x7f.", "damaged"),
    "a huge array": (ARRAY + b"J\xff\xff\xff\x7f\x85" + F8 + b"\x89C\x00tb.", "as many bytes"),
    "a huge empty array": (
        ARRAY + b"K\x00\x8a\x07\xff\xff\xff\xff\xff\xff\x00\x86" + F8 + b"\x89C\x00tb.",
        "as many bytes",
    ),
    "an array of pointers": (
        ARRAY + b"K\x01\x85" + TEXT % (b"O8", b"|") + b"\x89C\x08AAAAAAAAtb.",
        "in a wrong place",
    ),
    "fields": (ARRAY + b"K\x01\x85" + TEXT % (b"V8", b"|") + b"\x89C\x08AAAAAAAAtb.", "dtype"),
    "too few objects": (
        ARRAY + b"K\x05\x85" + TEXT % (b"O8", b"|") + b"\x89]K\x01atb.",
        "as many bytes",
    ),
    "text beyond Unicode": (
        ARRAY + b"K\x01\x85" + TEXT % (b"U1", b"<") + b"\x89C\x04\xff\xff\xff\xfftb.",
        "do not exist",
    ),
    "the same tuple again and again": (nested(b"."), "again and again"),
    "its hash": (b"}" + nested(b"Ns."), "as a key"),
    "a list in itself": (b"]q\x00h\x00a.", "in itself"),
    "a deep list": (b"]" * 100000 + b"a" * 99999 + b".", "nested too deep"),
    "a long number": (b"I" + b"9" * 10**7 + b"\n.", "newline"),
    "copies": (
        b"]X"
        + struct.pack("<I", 10**6)
        + b"a" * 10**6
        + b"q\x00ac_codecs\nencode\nq\x01h\x00\x85Ra"
        b"" + b"h\x01h\x00\x85Ra" * 30000 + b".",
        "copies more",
    ),
    "sets of one list": (
        b"]q\x00("
        + b"K\x01" * 10**5
        + b"eq\x01c__builtin__\nset\nq\x02"
        + b"h\x02h\x01\x85R" * 9999,
        "copies more",
    ),
    "numbers with one hash": (
        b"}("
        + b"".join(
            b"\x8a\x0a" + (k * (2**61 - 1)).to_bytes(10, "little") + b"N" for k in range(30, 30000)
        )
        + b"u.",
        "as a key",
    ),
    "NaN with one hash": (b"}(" + (b"G\x7f\xf8" + bytes(6) + b"N") * 30000 + b"u.", "as a key"),
    "more than it has": (b"\x87.", "not there"),
    "a mark that is not there": (b"t.", "damaged"),
    "no end": (b"]", "damaged"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_hostile_is_an_error_or_harmless(name, monkeypatch):
    data, reason = HOSTILE[name]
    monkeypatch.setattr(pickle, "loads", None)
    begin = time.process_time()
    if reason is None:
        assert decode_old(head(data)) is None
    else:
        with pytest.raises((BadRecord, RefusedRecord), match=reason):
            decode_old(head(data))
    assert time.process_time() - begin < 5


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


def sources():
    found = [pickle_of_python_2(OF_PYTHON_2), head(nested(b".")), pickle.dumps(Canary(), 2)]
    found += [pack_of_2017([np.arange(3), {"a": 1}])]
    for value in VALUES:
        found += [pickle.dumps(value, protocol) for protocol in range(2, pickle.HIGHEST_PROTOCOL)]
    return found + [head(data) for data, _ in HOSTILE.values() if len(data) < 1000]


def check_plain(obj):
    todo, seen = [obj], set()
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        kind = type(each)
        if kind in (list, tuple):
            todo.extend(each)
        elif kind in (dict, collections.OrderedDict):
            todo.extend([*each, *each.values()])
        elif kind is np.ndarray and each.dtype.hasobject:
            todo.extend(each.ravel().tolist())
        elif kind is np.ndarray or isinstance(each, np.generic):
            assert each.dtype.kind in "biufcSUmM", each.dtype
            each.tobytes()
        else:
            assert kind in PLAIN or kind.__name__ == "Timestamp", kind  # of msgpack


def run(seed, count):
    """Reads damaged pickles in little memory; prints how many gave an object, and the slowest."""
    rng, found = random.Random(seed), sources()
    limit_memory()
    modules, read, slowest = set(), 0, 0.0
    for number in range(count):
        if number == 500:  # until then the allocator and the caches fill
            before, modules = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, set(sys.modules)
        value = damage(rng, rng.choice(found), rng.choice(found))
        begin = time.process_time()
        try:
            obj = decode_old(head(value[2:]) if number % 2 else value)
        except (BadRecord, RefusedRecord):
            continue
        except BaseException:
            print(f"{number} of seed {seed}: {value.hex()}")  # noqa: T201
            raise
        finally:
            slowest = max(slowest, time.process_time() - begin)
        check_plain(obj)
        read += 1
    grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    assert grown < GROWTH_BYTES, f"it has grown by {grown} bytes"
    new = {name for name in set(sys.modules) - modules if not name.startswith("encodings.")}
    assert not new, new
    assert not os.path.exists("canary")
    print(f"{read} {slowest}")  # noqa: T201


def check_in_a_child(run_python, seed, count):
    done = run_python(f"from tests.utils.packing.test_old_values import run; run({seed}, {count})")
    assert done.returncode == 0, done.stdout + done.stderr
    read, slowest = map(float, done.stdout.split())
    assert count * 0.02 < read < count * 0.8 and slowest < 5


def test_damaged_and_hostile_pickles(run_python):
    check_in_a_child(run_python, seed=0, count=5000)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [pytest.param(each, marks=pytest.mark.nightly) for each in range(1, 6)]
)
def test_many_damaged_and_hostile_pickles(run_python, seed):
    check_in_a_child(run_python, seed, count=100000)
