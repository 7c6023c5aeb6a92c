"""Objects come back from memory as they were; from damaged memory come errors, or arrays in it."""

import collections
import gc
import struct
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.utils.packing.packed import (
    MAX_INLINE_BYTES,
    MAX_TUPLES,
    aligned,
    pack,
    unpack,
    write,
)
from tensorpack.utils.packing.packed_arrays import (
    MAX_DIMENSIONS,
    MAX_INTEGER_BYTES,
    Rows,
    aligned_empty,
)
from tests.utils.frames import array_header, assert_same_bits, extension

msgpack = pytest.importorskip("msgpack")

DTYPES = ["?", "u1", "i1", "<u2", ">u2", "<i4", ">i4", "<i8", ">u8", "<f2", ">f4", "<f8"]
DTYPES += ["<c8", ">c16", "S1", "S5", "<U1", ">U3"]


def through(obj, start=0, keep=None, room=0):
    """An object after it was written and read again, and the memory that it was in."""
    packed = pack(obj)
    memory = aligned_empty([start + packed.nbytes + room], np.uint8)
    memory[:] = 0xAA
    write(packed, memory, start)
    end = start + packed.nbytes
    assert (memory[:start] == 0xAA).all() and (memory[end:] == 0xAA).all()
    memory.flags.writeable = False
    return unpack(memory, len(packed.structure), start, end, keep), memory


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
@given(OBJECTS, st.sampled_from([0, 64, 640]), st.sampled_from([0, 100]))
def test_objects_come_back(obj, start, room):
    assert_same_bits(through(obj, start, room=room)[0], obj)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 4), (600,), (20, 30), (1,) * 32])
def test_arrays_of_every_dtype(dtype, shape):
    count = int(np.prod(shape, dtype=int))
    array = (np.arange(count) % 100).astype(dtype).reshape(shape)
    assert_same_bits(through([array])[0], [array])


def test_every_bit_of_floats_comes_back():
    for bits, dtype in [(np.arange(2**16, dtype="u2"), "f2"), (np.arange(2**16, dtype="u4"), "f4")]:
        array = (bits + 0x7F800000).astype("u4").view("f4") if dtype == "f4" else bits.view("f2")
        assert_same_bits(through(array)[0], array)


INNER = np.dtype([("x", "<f4"), ("y", "i2", (2, 3))], align=True)
EXACT = [
    np.str_(""),
    np.str_("a\0"),
    np.str_("\U0001f600\udc80"),
    np.bytes_(b""),
    np.bytes_(b"a\0\0"),
    np.bool_(0),
    np.longdouble(1) / 3,
    np.datetime64("2020-01-02T03:04", "m"),
    np.array((1, [[2, 3, 4], [5, 6, 7]]), INNER)[()],
    np.array(["2020-01-02", "NaT"], "M8[D]"),
    np.zeros((2, 30), INNER)[:, ::2],
    np.array((1, 2), "u1,>f8"),
    np.zeros(3, [("a", INNER), ("b", "S3"), ("c", "<U2")])[::2],
    np.zeros((0, 2), INNER),
    -(2**63) - 1,
    -(10**4000),
    "\ud83d\ude00",
    {"\udc80": [np.arange(200), (2**70, np.zeros(2, INNER), np.arange(200))]},
    msgpack.Timestamp(1, 2),
    float.fromhex("0x1p-1074"),
    struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0],
]


@pytest.mark.parametrize("number", range(len(EXACT)))
def test_types_and_bits_are_kept(number):
    for obj in (EXACT[number], [0, {"k": (EXACT[number],)}]):
        assert_same_bits(through(obj)[0], obj)


def test_the_largest_integers():
    for number in (1 << 8 * MAX_INTEGER_BYTES - 1) - 1, 1 - (1 << 8 * MAX_INTEGER_BYTES - 1):
        assert through(number)[0] == number


def test_a_memory_map_is_read_as_an_array(tmp_path):
    mapped = np.memmap(str(tmp_path / "raw"), np.int16, "w+", shape=(3,))
    assert_same_bits(through([mapped])[0], [np.zeros(3, np.int16)])


def test_dtypes_of_other_libraries_are_refused():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    for value in (np.zeros(2, bfloat16), bfloat16(1), np.zeros(2, [("a", bfloat16)])):
        with pytest.raises(TypeError, match="cannot be sent or stored"):
            pack(value)


def test_arrays_lie_at_multiples_of_64_and_are_read_only_views():
    obj = [np.arange(1000.0), {"k": (np.arange(513, dtype=np.uint8),)}, np.zeros((9, 60), "<U1")]
    assert not through([np.arange(3.0)])[0][0].flags.writeable
    found, memory = through(obj, start=128)
    for array in (found[0], found[1]["k"][0], found[2]):
        assert np.shares_memory(array, memory) and not array.flags.writeable
        assert array.ctypes.data % 64 == 0
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


def test_views_of_memory_that_may_be_written_to_may_be_too():
    packed = pack(np.zeros(1000))
    memory = aligned_empty([packed.nbytes], np.uint8)
    write(packed, memory)
    unpack(memory, len(packed.structure))[:] = 1
    assert unpack(memory, len(packed.structure)).all()


def test_large_arrays_are_not_copied_by_pack():
    array = np.zeros(1000)
    packed = pack([array, array])
    assert packed.arrays[0] is array and packed.arrays[1] is array
    assert packed.nbytes == aligned(len(packed.structure)) + 2 * aligned(8000)


def test_keep_sees_each_array_and_what_it_returns_is_taken():
    seen = []

    def keep(array):
        seen.append(array)
        return array.copy()

    obj = {"a": np.arange(1000.0), "b": (np.arange(900.0), [np.arange(3.0)])}
    found, memory = through(obj, keep=keep)
    assert_same_bits(found, obj)
    assert [array.size for array in seen if array.nbytes > 512] == [1000, 900]
    assert not np.shares_memory(found["a"], memory)
    for array in (found["a"], found["b"][0], found["b"][1][0]):
        assert array.flags.writeable and array.flags.aligned


def test_an_error_of_keep_comes_out():
    class Full(Exception):
        pass

    def keep(array):
        raise Full

    with pytest.raises(Full):
        through([np.zeros(1000)], keep=keep)


Pair = collections.namedtuple("Pair", "a b")


class Listlike(list):
    pass


UNFIT = [
    (object(), "a object"),
    (Listlike(), "a Listlike"),
    (1 << 8 * MAX_INTEGER_BYTES, "an integer of 32769 bits"),
    (np.array([None]), "an array of object"),
    (Rows([np.array([None])], np.dtype(object)), "an array of object"),
    (np.array([(None,)], [("a", "O")]), "an array of "),
    (np.zeros(2, "V3"), "an array of "),
    (np.void(b"ab"), "an array of "),
    (np.zeros((1, 1)).view(np.matrix), "a matrix"),
    (np.rec.array([(1,)], [("a", "i4")])[0], "an? (array of|record)"),
    (Pair(1, 2), "a Pair"),
    (msgpack.ExtType(3, b"ab"), "a ExtType"),
    (bytearray(b"ab"), "a bytearray"),
    (bytearray(70000), "a bytearray"),
    (memoryview(np.arange(2)), "a memoryview"),
]


@pytest.mark.parametrize("number", range(len(UNFIT)))
def test_what_does_not_fit_is_named_with_its_place(number):
    obj, name = UNFIT[number]
    for place, holder in [
        ("", obj),
        (r"\[0\]: ", [obj]),
        (r"\[1\]: ", (0, obj)),
        (r"\['k'\]\[2\]\['x'\]: ", {"j": 0, "k": (1, 2, {"x": obj}), "l": {1}}),
        (r"\[\(1, 2\)\]: ", {(1, 2): obj}),
    ]:
        with pytest.raises(TypeError, match=rf"^{place}{name}.* cannot be sent or stored"):
            pack(holder)


def test_a_key_that_does_not_fit():
    with pytest.raises(TypeError, match="a frozenset cannot be sent or stored"):
        pack([{frozenset(): 1}])
    for key in memoryview(b"a"), (1, memoryview(b"a")), msgpack.ExtType(1, b""):
        with pytest.raises(TypeError, match="a (memoryview|ExtType) cannot be sent or stored"):
            pack([{key: 1}])


def test_buffers_are_told_what_to_become():
    with pytest.raises(TypeError) as caught:
        pack({"a": memoryview(np.arange(2.0))})
    assert str(caught.value) == (
        "['a']: a memoryview cannot be sent or stored, because it would be read as another type. "
        "Make it bytes(...), or an array with np.asarray(...)."
    )


def test_depth_is_limited():
    deep = []
    for _ in range(400):
        deep = [deep]
    assert_same_bits(through(deep)[0], deep)
    for _ in range(1000):
        deep = [deep]
    with pytest.raises(ValueError, match="recursion limit"):
        pack(deep)
    cycle = []
    cycle.append(cycle)
    with pytest.raises(ValueError, match="recursion limit"):
        pack(cycle)


def test_tuples_are_nested_no_deeper_than_they_can_be_read():
    deep = ()
    for _ in range(MAX_TUPLES - 1):
        deep = (deep,)
    assert_same_bits(through(deep)[0], deep)
    with pytest.raises(ValueError, match=f"at most {MAX_TUPLES} deep"):
        pack((deep,))
    many = [((1,), (2,))] * (2 * MAX_TUPLES)  # side by side they may be as many as one likes
    assert_same_bits(through(many)[0], many)


@pytest.mark.parametrize("shape", [(), (3,), (20, 30)])
@pytest.mark.parametrize("dtype", ["f4", ">i2", "u1"])
def test_rows_come_back_as_one_array(shape, dtype):
    parts = [np.full(shape, number, "i8") for number in range(5)]
    found, _ = through({"batch": Rows(parts, np.dtype(dtype))})
    assert_same_bits(found["batch"], np.stack(parts).astype(dtype))


def test_memory_that_is_too_small_is_an_error():
    packed = pack(np.zeros(1000))
    with pytest.raises((TypeError, ValueError)):
        write(packed, np.zeros(packed.nbytes - 64, np.uint8))


OUTSIDE = [(-64, 8, None), (0, 129, None), (64, 65, None), (0, -1, None)]
OUTSIDE += [(0, 8, 129), (0, 8, 7), (0, 2**63, None)]


@pytest.mark.parametrize("start, nbytes, end", OUTSIDE)
def test_an_object_outside_of_the_memory_is_refused(start, nbytes, end):
    with pytest.raises(ValueError, match="does not fit in 128 bytes"):
        unpack(np.zeros(128, np.uint8), nbytes, start, end)


def test_arrays_end_where_the_object_ends():
    packed = pack([np.zeros(1000, np.uint8)])
    memory = np.zeros(4096, np.uint8)
    write(packed, memory)
    for end in range(len(packed.structure), packed.nbytes - 24):
        with pytest.raises(ValueError, match=f"of {end} bytes"):
            unpack(memory, len(packed.structure), 0, end)


NUMBERS = st.one_of(
    st.integers(0, 1100), st.sampled_from([2**31, 2**32, 2**62, 2**63, 2**64 - 64, 2**64 - 1])
)


@settings(max_examples=500)
@given(
    st.sampled_from([*DTYPES, "|S0", "|V8", "|O8", "<M8", "<f3"]),
    st.lists(NUMBERS, max_size=4),
    NUMBERS,
)
def test_no_array_lies_outside_of_the_area(dtype, shape, position):
    structure = extension(2, array_header(dtype, *shape) + struct.pack("<Q", position))
    memory = np.frombuffer(structure + bytes(-len(structure) % 64) + bytes(1024), np.uint8)
    try:
        array = unpack(memory, len(structure))
    except ValueError:
        return
    begin = array.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    assert array.nbytes > 0
    assert aligned(len(structure)) <= begin <= begin + array.nbytes <= memory.nbytes


def test_more_dimensions_than_can_be_read_are_not_written():
    try:
        array = np.zeros([1] * (MAX_DIMENSIONS + 1))
    except ValueError:
        pytest.skip("this numpy has no such arrays")
    with pytest.raises(TypeError, match="33 dimensions"):
        pack([array])


def test_packing_and_unpacking_leave_no_reference_cycle():
    """Otherwise the arrays of datapoints would stay in memory until they are collected."""
    array = np.zeros(MAX_INLINE_BYTES + 1, np.uint8)
    held = weakref.ref(array)
    gc.disable()
    try:
        packed = pack([array, (1, np.float32(2)), "\ud800"])
        memory = np.empty(packed.nbytes, np.uint8)
        write(packed, memory)
        unpack(memory, len(packed.structure))
        del array, packed
        assert held() is None
        held = weakref.ref(memory)
        del memory
        assert held() is None
    finally:
        gc.enable()
