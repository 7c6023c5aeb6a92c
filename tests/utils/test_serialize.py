"""Tests of `tensorpack.utils.serialize`."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.utils.serialize import dumps, loads

msgpack = pytest.importorskip("msgpack")

PLAIN = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False),
        st.text(max_size=5),
        st.binary(max_size=5),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers(0, 9)), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(PLAIN)
def test_plain_objects_come_back_equal_and_of_the_same_type(obj):
    again = loads(dumps(obj))
    assert again == obj and repr(again) == repr(obj)


@pytest.mark.parametrize(
    "dtype", ["?", "u1", "i2", "<i8", ">i4", "f2", "f4", "f8", "c8", "S3", "U2"]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3)])
def test_arrays_come_back(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    again = loads(dumps([array]))[0]
    assert again.dtype == array.dtype and again.shape == array.shape
    np.testing.assert_array_equal(again, array)


def test_an_array_is_a_copy_that_may_be_written_to():
    data = dumps(np.zeros(3))
    first = loads(data)
    first[:] = 1
    assert first.flags.writeable and loads(data).tolist() == [0, 0, 0]


def test_arrays_that_are_not_contiguous():
    array = np.arange(24).reshape(2, 3, 4)
    for view in (array.T, array[:, ::2], np.asfortranarray(array)):
        np.testing.assert_array_equal(loads(dumps(view)), view)


@pytest.mark.parametrize("scalar", [np.float32(1.5), np.int64(-1), np.bool_(True), np.str_("ab")])
def test_scalars_keep_their_type(scalar):
    again = loads(dumps({"x": scalar}))["x"]
    assert type(again) is type(scalar) and again == scalar


def test_a_datapoint_with_a_buffer_that_is_not_bytes():
    data = bytearray(dumps([np.ones(2, np.float32), 3]))
    image, label = loads(memoryview(data))
    assert image.tolist() == [1, 1] and label == 3


@pytest.mark.parametrize(
    "obj",
    [
        object(),
        {1, 2},
        np.array([None]),
        np.array([object()], dtype=object),
        np.zeros(2, dtype="i4,f4"),
        np.array(["2017-07-24"], dtype="M8[D]"),
        1j,
    ],
)
def test_other_things_are_refused_by_name(obj):
    with pytest.raises(TypeError, match="Cannot serialize"):
        dumps([obj])


def extension(code, header, body=b"", length=None):
    head = msgpack.packb(header)
    size = struct.pack(">H", len(head) if length is None else length)
    return msgpack.packb(msgpack.ExtType(code, size + head + body))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        dumps([1, 2])[:-1],
        dumps(1) + b"\x00",
        extension(1, ["<f4", [2]], b"123"),
        extension(1, ["<f4", [-1]], b""),
        extension(1, ["<f4", [2.0]], b"12345678"),
        extension(1, ["<f4", [True]], b"1234"),
        extension(1, ["<f4", [2**62, 2**62]], b""),
        extension(1, ["|O", [1]], b"12345678"),
        extension(1, ["|O8", [1]], b"12345678"),
        extension(1, ["<i4,<f4", [1]], b"12345678"),
        extension(1, ["|S0", [5]], b""),
        extension(1, ["<f3", [1]], b"123"),
        extension(1, ["<f4"], b""),
        extension(1, {"a": 1}, b""),
        extension(1, "<f4", b""),
        extension(1, ["<f4", [1]], b"1234", length=60000),
        extension(1, ["<f4", [1] * 1000], b"1234"),
        msgpack.packb(msgpack.ExtType(1, b"")),
        msgpack.packb(msgpack.ExtType(1, b"\x00")),
        msgpack.packb(msgpack.ExtType(3, msgpack.packb(5))),
        msgpack.packb(msgpack.ExtType(77, b"")),
        msgpack.packb({"x": 1}).replace(b"\xa1x", dumps(np.zeros(1))),
        b"\x91" * 100000,
    ],
)
def test_damaged_bytes_are_a_value_error(data):
    with pytest.raises(ValueError, match="not the bytes of one object"):
        loads(data)


@settings(max_examples=300)
@given(st.data())
def test_damage_never_does_anything_else(data):
    original = dumps([np.arange(4, dtype=np.int16), ("a", 1), {"k": np.float32(2)}])
    damaged = bytearray(original)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    try:
        result = loads(bytes(damaged))
    except ValueError:
        result = None
    # whatever came through is made of what the format has, no object of another kind
    assert isinstance(
        result, (list, tuple, dict, str, bytes, int, float, np.ndarray, np.generic)
    ) or (result is None)
