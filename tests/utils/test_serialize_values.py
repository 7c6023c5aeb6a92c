"""Values come back as they were; from damaged frames come errors, or arrays within them."""

import collections
import functools
import gc
import weakref
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.utils import serialize
from tensorpack.utils.serialize import FrameError, dumps, loads
from tests.utils.frames import assert_same_bits

msgpack = pytest.importorskip("msgpack")

DTYPES = ["?", "u1", "i1", "<u2", ">u2", "<i4", ">i4", "<i8", ">u8", "<f2", ">f4", "<f8"]
DTYPES += ["<c8", ">c16", "S1", "S5", "<U1", ">U3"]


def through(obj):
    """An object after it was written and read again."""
    return loads(dumps(obj), copy=False)


@st.composite
def arrays(draw):
    """Arrays of all dtypes, from nothing to some thousand bytes, in all orders in memory."""
    shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 7, 40]), max_size=3))
    count = int(np.prod(shape, dtype=int))
    values = np.arange(draw(st.integers(0, 9)), draw(st.integers(0, 9)) + 100, dtype=float)
    array = np.resize(values, count).astype("u1").astype(draw(st.sampled_from(DTYPES)))
    array = array.reshape(shape)
    layout = draw(st.sampled_from(["C", "F", "T", "reversed", "stepped", "broadcast"]))
    if layout == "F":
        return np.asfortranarray(array)
    if layout == "T":
        return array.T
    if layout == "reversed" and array.ndim:
        return array[::-1]
    if layout == "stepped" and array.ndim:
        return array[..., ::2]
    if layout == "broadcast":
        return np.broadcast_to(array, (2, *array.shape))
    return array


def scalars():
    return st.sampled_from(DTYPES).map(lambda dtype: np.arange(50, 51).astype(dtype)[0])


PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(blacklist_categories=()), max_size=5),
    st.binary(max_size=5),
)
KEYS = st.one_of(st.text(max_size=3), st.integers(0, 9), st.tuples(st.integers(0, 9), st.none()))
OBJECTS = st.recursive(
    st.one_of(PLAIN, arrays(), scalars()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(KEYS, inner, max_size=3),
    ),
    max_leaves=8,
)


@settings(max_examples=300)
@given(OBJECTS)
def test_objects_come_back(obj):
    assert_same_bits(through(obj), obj)


EXACT = [
    np.longdouble(1) / 3,
    -(10**4000),
    "\ud83d\ude00",
    {"\udc80": [np.arange(200), (2**70, np.zeros(2, "u1,>f8"), np.arange(200))]},
    float.fromhex("0x1p-1074"),
]  # beside those of `stored_values`


@pytest.mark.parametrize("number", range(len(EXACT)))
def test_types_and_bits_are_kept(number):
    for obj in (EXACT[number], [0, {"k": (EXACT[number],)}]):
        assert_same_bits(through(obj), obj)


def test_a_memory_map_is_read_as_an_array(tmp_path):
    mapped = np.memmap(str(tmp_path / "raw"), np.int16, "w+", shape=(3,))
    assert_same_bits(through([mapped]), [np.zeros(3, np.int16)])


def test_dtypes_of_other_libraries_are_refused():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    for value in (np.zeros(2, bfloat16), bfloat16(1), np.zeros(2, [("a", bfloat16)])):
        with pytest.raises(TypeError, match="cannot be sent or stored"):
            dumps(value)


Pair = collections.namedtuple("Pair", "a b")


class Listlike(list):
    pass


UNFIT = [
    (object(), "a object"),
    (Listlike(), "a Listlike"),
    (np.array([None]), "an array of object"),
    (np.array([(None,)], [("a", "O")]), "an array of "),
    (np.zeros((1, 1)).view(np.matrix), "a matrix"),
    (Pair(1, 2), "a Pair"),
]


@pytest.mark.parametrize("number", range(len(UNFIT)))
def test_what_does_not_fit_is_named_with_its_place(number):
    obj, name = UNFIT[number]
    holder = {"j": 0, "k": (1, 2, {"x": obj}), "l": {1}}
    said = rf"^\['k'\]\[2\]\['x'\]: {name}.* cannot be sent or stored"
    with pytest.raises(TypeError, match=said):
        dumps(holder)


def test_other_buffers_come_back_as_bytes():
    assert through({"a": memoryview(b"b"), "c": bytearray(b"d")}) == {"a": b"b", "c": b"d"}


def test_depth_is_limited():
    deep = []
    for _ in range(400):
        deep = [deep]
    assert_same_bits(through(deep), deep)
    for _ in range(1000):
        deep = [deep]
    with pytest.raises(ValueError, match="recursion limit"):
        dumps(deep)
    cycle = []
    cycle.append(cycle)
    with pytest.raises(ValueError, match="recursion limit"):
        dumps(cycle)


def test_tuples_are_nested_no_deeper_than_they_can_be_read():
    deep = ()
    for _ in range(31):
        deep = (deep,)
    assert_same_bits(through(deep), deep)
    with pytest.raises(ValueError, match="at most 32 deep"):
        dumps((deep,))
    with mock.patch.object(serialize, "_MAX_TUPLES", 60):
        crafted = serialize.dumps(functools.reduce(lambda inner, _: (inner,), range(60), 0))
    with pytest.raises(FrameError, match="more than 32 deep"):  # where msgpack would crash
        loads(crafted)
    many = [((1,), (2,))] * (64)  # side by side they may be as many as one likes
    assert_same_bits(through(many), many)


def test_packing_and_unpacking_leave_no_reference_cycle():
    """Otherwise the arrays of datapoints would stay in memory until they are collected."""
    array = np.zeros(513, np.uint8)
    held = weakref.ref(array)
    gc.disable()
    try:
        data = dumps([array, (1, np.float32(2)), "\ud800"])
        del array
        assert held() is None
        memory = np.array(bytearray(data), np.uint8)
        held = weakref.ref(memory)
        loads(memory, copy=False)
        del memory
        assert held() is None
    finally:
        gc.enable()
