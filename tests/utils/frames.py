"""Frames, structures and arrays made by hand, and how exactly they come back."""

import struct
import zlib

import numpy as np
import pytest

msgpack = pytest.importorskip("msgpack")

HEADER = struct.Struct("<4sBBHIIQQ32x")


def frame_of(data, area=b"", **changes):
    """A frame with a right checksum around any bytes; `changes` are fields of its header."""
    body = data + bytes(-len(data) % 64) + area
    fields = {
        "magic": b"\xf7TPF",
        "version": 1,
        "flags": 0,
        "zeros": 0,
        "structure": len(data),
        "frame": HEADER.size + len(body),
    }
    fields.update(changes)
    begin = [fields[name] for name in ("magic", "version", "flags", "zeros")]
    rest = [0, fields["structure"], fields["frame"]]
    checksum = zlib.crc32(body, zlib.crc32(HEADER.pack(*begin, 0, *rest)[12:]))
    return HEADER.pack(*begin, fields.get("checksum", checksum), *rest) + body


def extension(code, data):
    return msgpack.packb(msgpack.ExtType(code, data))


def array_header(dtype, *shape):
    name = dtype.encode()
    return struct.pack("<BB", len(name), len(shape)) + name + struct.pack(f"<{len(shape)}Q", *shape)


def assert_same_bits(found, expected):
    """Equal, of the same types, with the same bytes."""
    assert type(found) is type(expected)
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for each, other in zip(found, expected):
            assert_same_bits(each, other)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            assert_same_bits(found[key], expected[key])
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.dtype.byteorder == expected.dtype.byteorder
        assert found.tobytes() == expected.tobytes()
    else:
        assert repr(found) == repr(expected)
