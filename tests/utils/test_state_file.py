"""Tests of `tensorpack.utils.state_file`."""

import collections
import io
import math
import struct
import subprocess
import sys

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tensorpack.utils import _state_container
from tensorpack.utils._state_container import write_container
from tensorpack.utils.state_file import read_state, write_state

INNER = np.dtype([("x", "<f4"), ("y", "i2", (2, 3))], align=True)


def round_trip(tree, path):
    write_state(path, tree)
    return read_state(path)


def same(left, right):
    """Whether two trees are alike to the last bit, and of the same types."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, (np.str_, np.bytes_)):
        return left == right and len(left) == len(right)
    if isinstance(left, (np.ndarray, np.generic)):
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        return left.tobytes() == right.tobytes()
    if isinstance(left, float):
        return struct.pack("d", left) == struct.pack("d", right)
    return left == right


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "state")


SCALARS = [
    np.bool_(True),
    np.int8(-3),
    np.uint64(2**64 - 1),
    np.float16(0.1),
    np.float32(-0.0),
    np.float64("nan"),
    np.longdouble(1) / 3,
    np.complex64(1 - 2j),
    np.datetime64("2020-01-02T03:04", "m"),
    np.timedelta64(5, "us"),
    np.str_("a\0b\0"),
    np.str_(""),
    np.bytes_(b"a\0b\0"),
    np.array((1, [[2, 3, 4], [5, 6, 7]]), INNER)[()],
]


@pytest.mark.parametrize("value", SCALARS, ids=lambda value: type(value).__name__)
def test_numpy_scalars_keep_their_type(value, path):
    assert same(round_trip({"a": value}, path), {"a": value})


ARRAYS = [
    np.arange(6, dtype=">i4").reshape(2, 3),
    np.arange(24).reshape(2, 3, 4).transpose(2, 0, 1)[::-1, :, ::2],
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.broadcast_to(np.float32(2), (3, 2)),
    np.array(7, np.uint8),
    np.zeros((0, 3), "f2"),
    np.array([True, False]),
    np.array(["a", "\U0001f600b"]),
    np.array([b"a", b"bc"]),
    np.array(["2020-01-02", "NaT"], "M8[D]"),
    np.zeros(3, INNER),
    np.zeros(3, [("a", INNER), ("b", "S3")])[::2],
    np.array([np.nan, np.inf, -0.0]),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype.str}{array.shape}")
def test_arrays_come_back_exactly_and_writable(array, path):
    found = round_trip([array], path)[0]
    assert same(found, np.ascontiguousarray(array).reshape(array.shape))
    assert found.flags.writeable and found.flags.c_contiguous


def test_arrays_larger_than_a_piece(path, monkeypatch):
    monkeypatch.setattr(_state_container, "_PIECE_BYTES", 64)
    whole = np.random.RandomState(0).randint(0, 256, (7, 5, 11, 2), np.uint8)
    views = [whole, whole.T, whole[:, ::2], whole[::-1, :, ::3], whole.view("u2").T, whole[0].T]
    copied = []
    real = np.ascontiguousarray
    monkeypatch.setattr(np, "ascontiguousarray", lambda part: copied.append(part) or real(part))
    write_state(path, views)
    assert all(part.nbytes <= 64 or part.flags.c_contiguous for part in copied)
    assert all(map(np.array_equal, read_state(path), views))


def test_a_memory_map_comes_back_as_an_array(tmp_path, path):
    mapped = np.memmap(str(tmp_path / "raw"), np.int16, "w+", shape=(3,))
    mapped[:] = [1, 2, 3]
    assert same(round_trip([mapped], path), [np.array([1, 2, 3], np.int16)])


PLAIN = [
    None,
    True,
    1,
    -(10**5000),
    2**63,
    -(2**63),
    1.5,
    5e-324,
    -0.0,
    math.inf,
    struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0],
    "\ud83d\ude00",
    "\U0001f600\0",
    b"\x00\xff",
    [],
    (),
    {},
    ((1,), [(2,)]),
    {"b": 1, "a": 2},
    {"$array": 0},
    {"$dict": [["a", 1]], "$": 2},
    {"$tuple": ({"$$": 1},), "\udc80": 3},
    {"": {"": ""}},
]


@pytest.mark.parametrize("tree", PLAIN, ids=map(str, range(len(PLAIN))))
def test_plain_values(tree, path):
    assert same(round_trip(tree, path), tree)


TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.binary(max_size=8)
    | st.text(st.characters(blacklist_categories=()), max_size=4)
    | st.sampled_from(SCALARS + [array.copy() for array in ARRAYS]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(
            st.text("$abilnrtuy\ud83d\ude00", max_size=6) | st.sampled_from(["$array", "$tuple"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(TREES)
def test_every_tree_comes_back(path, tree):
    assert same(round_trip(tree, path), contiguous(tree))


def contiguous(tree):
    if isinstance(tree, np.ndarray):
        return np.ascontiguousarray(tree).reshape(tree.shape)
    if isinstance(tree, dict):
        return {key: contiguous(item) for key, item in tree.items()}
    return type(tree)(map(contiguous, tree)) if isinstance(tree, (list, tuple)) else tree


Pair = collections.namedtuple("Pair", "a b")


class Number(int):
    pass


@pytest.mark.parametrize(
    "value, kind",
    [
        (object(), "object"),
        (1j, "complex"),
        ({1}, "set"),
        (Pair(1, 2), "Pair"),
        (Number(1), "Number"),
        (collections.OrderedDict(), "OrderedDict"),
        (np.array([None]), r"dtype object"),
        (np.array([(None,)], [("a", "O")]), "dtype"),
        (np.array(["a"], object), "dtype object"),
        (np.ma.masked_array([1]), "MaskedArray"),
        (np.rec.array([(1,)], [("a", "i4")]), "recarray"),
        (np.zeros(2, "V0"), r"dtype \|V0"),
        (np.void(b""), r"dtype \|V0"),
    ],
)
def test_other_values_are_named_and_nothing_is_written(value, kind, path):
    write_state(path, "before")
    with pytest.raises(TypeError, match=f"'callbacks/ExpReplay/1/rng'.*{kind}"):
        write_state(path, {"callbacks": {"ExpReplay": [0, {"rng": value}]}})
    assert read_state(path) == "before"


def test_dtypes_of_other_libraries_are_refused(path):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    for value in (np.zeros(2, bfloat16), bfloat16(1), np.zeros(2, [("a", bfloat16)])):
        with pytest.raises(TypeError, match="'a'.*bfloat16"):
            write_state(path, {"a": value})


def test_keys_are_text(path):
    with pytest.raises(TypeError, match="'a/b'.* the key 1 of type int"):
        write_state(path, {"a": {"b": {1: 2}}})
    with pytest.raises(TypeError, match="the whole .* the key None"):
        write_state(path, {None: 2})


def test_depth_is_bounded(path):
    tree = {"$a": (1,)}
    for _ in range(31):
        tree = {"$a": (tree,)}
    assert depth(tree) == 64
    assert same(round_trip(tree, path), tree)
    with pytest.raises(TypeError, match="deeper than 64 levels.* at '0/"):
        write_state(path, [tree])
    loop = []
    loop.append(loop)
    with pytest.raises(TypeError, match="contains itself"):
        write_state(path, loop)


def depth(tree):
    if tree == 1:
        return 0
    return 1 + max(depth(item) for item in (tree.values() if isinstance(tree, dict) else tree))


def some_bytes(path):
    tree = {"a": np.arange(3), "$b": (np.float32(1), math.nan, b"x"), "c": np.zeros((2, 0))}
    write_state(path, tree)
    with open(path, "rb") as file:
        return tree, file.read()


def put(path, data):
    with open(path, "wb") as file:
        file.write(data)


def test_every_truncation_is_noticed(path):
    _, data = some_bytes(path)
    for size in range(len(data)):
        put(path, data[:size])
        with pytest.raises(ValueError, match="Cannot use the state in .*state"):
            read_state(path)
    put(path, data + b"\0")
    with pytest.raises(ValueError, match="Cannot use"):
        read_state(path)


def test_a_flipped_bit_in_any_byte_is_noticed(path):
    tree, data = some_bytes(path)
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 8
        put(path, flipped)
        with pytest.raises(ValueError, match="Cannot use"):
            read_state(path)
    put(path, data)
    assert same(read_state(path), tree)


def test_another_version_is_an_error_that_says_so(path):
    _, data = some_bytes(path)
    put(path, data[:8] + struct.pack("<I", 2) + data[12:])
    with pytest.raises(ValueError, match="of version 2, and this program reads 1"):
        read_state(path)


@pytest.mark.parametrize(
    "content",
    [
        {"$array": 1},
        {"$array": "a"},
        {"$unknown": 1},
        {"$bytes": "?"},
        {"$float": "00"},
        {"$int": 1},
        {"$scalar": ["O", ""]},
        {"$scalar": ["<f4", ""]},
        {"$scalar": [None, ""]},
        {"$scalar": [{"names": 1}, ""]},
        {"$dict": [1]},
        {"$dict": [[[], 1]]},
        {"$tuple": 1},
    ],
    ids=str,
)
def test_a_whole_file_with_nonsense_is_a_value_error(content, path):
    file = io.BytesIO()
    write_container(file, b"tp-state", content, [np.arange(2)])
    put(path, file.getvalue())
    with pytest.raises(ValueError, match="not a tree of this program"):
        read_state(path)


def test_other_files(path, tmp_path):
    with pytest.raises(FileNotFoundError):
        read_state(path)
    put(path, b"x" * 1000)
    with pytest.raises(ValueError, match="it begins with b'xxxxxxxx'"):
        read_state(path)
    with pytest.raises(OSError):
        read_state(str(tmp_path))
    with pytest.raises(OSError):
        write_state(str(tmp_path), 1)


def test_two_processes_write_the_same_bytes(path, tmp_path):
    """The file depends on the tree alone, so that equal states can be told by their hash."""
    program = (
        "import sys, numpy as np; from tensorpack.utils.state_file import write_state;"
        "write_state(sys.argv[1], {'b': np.arange(3), 'a': [1, (np.float32(2), b'c')]})"
    )
    for name in ("one", "two"):
        subprocess.run([sys.executable, "-c", program, str(tmp_path / name)], check=True)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


# What every version of Python and numpy wrote so far, and has to go on writing and reading.
RECORDED = (
    "74702d7374617465010000008b010000000000007b22617272617973223a5b7b226474797065223a223c693222"
    "2c227368617065223a5b322c325d7d2c7b226474797065223a7b226e616d6573223a5b2261222c2262225d2c22"
    "666f726d617473223a5b223c6934222c227c5332225d2c226f666673657473223a5b302c345d2c226974656d73"
    "697a65223a362c22616c69676e6564223a66616c73657d2c227368617065223a5b315d7d5d2c22636f6e74656e"
    "74223a7b226172726179223a7b22246172726179223a307d2c227363616c6172223a7b22247363616c6172223a"
    "5b223c6634222c224141414150773d3d225d7d2c226669656c6473223a7b22246172726179223a317d2c22706c"
    "61696e223a5b6e756c6c2c747275652c7b2224696e74223a222d34303030303030303030303030303030303022"
    "7d2c302e312c7b2224666c6f6174223a2237666630303030303030303030303030227d2c225c7530306534222c"
    "7b22246279746573223a222f773d3d227d2c7b22247475706c65223a5b312c7b222464696374223a5b5b222422"
    "2c325d5d7d5d7d5d7d7d98b38e2fa6918e21c79543f48ccb91a890cd98d87d2efa7119b1dc34183d4be9010002"
    "000300040001000000616258c54f312689b9a006e9b1a01bbe3c0efc3c2fdf144046c91bceb983c781d41f"
)


def test_a_recorded_file_is_written_and_read(path):
    tree = {
        "array": np.array([[1, 2], [3, 4]], "<i2"),
        "scalar": np.float32(0.5),
        "fields": np.array([(1, b"ab")], [("a", "<i4"), ("b", "S2")]),
        "plain": [None, True, -(2**70), 0.1, math.inf, "\xe4", b"\xff", (1, {"$": 2})],
    }
    put(path, bytes.fromhex(RECORDED))
    assert same(read_state(path), tree)
    write_state(path, tree)
    with open(path, "rb") as file:
        assert file.read().hex() == RECORDED
