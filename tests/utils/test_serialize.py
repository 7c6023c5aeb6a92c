"""Objects come back from a frame as they were; one with anything wrong is refused as a whole."""

import io
import pickle
import struct

import numpy as np
import pytest

from tensorpack.utils.serialize import (
    FrameError,
    dump_hashed,
    dumps,
    load_frame,
    load_hashed,
    loads,
)
from tests.utils.frames import array_header, assert_same_bits, extension, frame_of

msgpack = pytest.importorskip("msgpack")


def test_a_frame_made_by_hand_is_what_is_written():
    assert dumps([1, "a"]) == frame_of(msgpack.packb([1, "a"]))
    large = np.arange(200, dtype="<i4")
    reference = extension(2, array_header("<i4", 200) + struct.pack("<Q", 0))
    assert dumps(large) == frame_of(reference, large.tobytes() + bytes(-800 % 64))


def test_what_a_program_puts_into_msgpack_is_not_called(monkeypatch):
    # as msgpack_numpy.patch() does at the top of the programs of a family of papers
    obj, old = [np.arange(300), {"k": (1, "a" * 5000)}], msgpack.packb({b"k": [1]})
    data = dumps(obj)
    for name in "Packer Unpacker pack packb unpack unpackb dump dumps load loads".split():
        monkeypatch.setattr(msgpack, name, None)
    assert dumps(obj) == data and loads(old) == {b"k": [1]}
    array, rest = loads(data)
    assert array.tolist() == [*range(300)] and rest == obj[1]


@pytest.mark.parametrize("count", [3, 300])
def test_arrays_are_copies_that_may_be_written_to_wherever_they_are(count):
    def arrays():
        return np.zeros(count)

    obj = [arrays(), (arrays(), [arrays(), {"k": (arrays(),)}]), {1: arrays()}]
    data = dumps(obj)
    first = loads(data)
    loaded = [first[0], first[1][0], first[1][1][0], first[1][1][1]["k"][0], first[2][1]]
    for array in loaded:
        array[:] = 1
    second = loads(data)
    assert not any(array.any() for array in (second[0], second[1][0], second[1][1][1]["k"][0]))
    assert type(first[1]) is tuple and type(first[1][1][1]["k"]) is tuple


def test_views_lie_in_the_frame_at_multiples_of_64():
    arrays = [np.arange(100.0), np.arange(1000, dtype=np.uint8)]
    data = np.frombuffer(bytearray(dumps(arrays)), np.uint8)  # it may be written to, they may not
    for array, original in zip(loads(data, copy=False), arrays):
        assert np.shares_memory(array, data) and not array.flags.writeable
        assert (array.ctypes.data - data.ctypes.data) % 64 == 0
        np.testing.assert_array_equal(array, original)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_arrays_of_a_file_may_be_written_to_and_the_large_are_views():
    obj = {"large": np.arange(100.0), "small": (np.arange(3), np.zeros(0))}
    file = io.BytesIO()
    size, _ = dump_hashed(obj, file)
    memory = np.frombuffer(bytearray(file.getvalue()), np.uint8)
    assert size == memory.size
    loaded = load_hashed(memory)
    assert_same_bits(loaded, obj)
    loaded["large"][:] = loaded["small"][0][:] = 1
    assert np.shares_memory(loaded["large"], memory) and load_hashed(memory)["large"].all()
    with pytest.raises(FrameError, match="flags 1"):
        loads(memory)


@pytest.mark.parametrize("kind", [bytearray, memoryview, lambda data: np.frombuffer(data, "<i4")])
def test_any_buffer_is_read(kind):
    image, label = loads(kind(dumps([np.ones(2, np.float32), 3])))
    assert image.tolist() == [1, 1] and label == 3


def test_what_is_written_is_limited():
    with pytest.raises(ValueError, match="has 1152 bytes, and 1000 are allowed. Split it"):
        dumps(np.zeros(1024, np.uint8), max_bytes=1000)
    assert len(dumps(np.zeros(1024, np.uint8), max_bytes=1152)) == 1152


def test_what_is_read_is_limited():
    data = dumps(np.zeros(1024, np.uint8))
    assert loads(data, max_bytes=len(data)).shape == (1024,)
    with pytest.raises(FrameError, match="1152 bytes, and 1151 are allowed"):
        loads(data, max_bytes=1151)


WRONG_HEADERS = [
    (b"", "These 0 bytes begin with"),
    (b"\x80\x03" + dumps(1)[2:], "damaged, or not of tensorpack"),
    (frame_of(b"\x01", version=2), "version 2"),
    (frame_of(b"\x01", flags=1), "flags 1"),
    (frame_of(b"\x01", checksum=5), "checksum"),
    (dumps(1) + bytes(64), "192 bytes, and the frame says"),
    (dumps(np.zeros(100))[:-64], "the frame says"),
]


@pytest.mark.parametrize("number", range(len(WRONG_HEADERS)))
def test_a_wrong_header_is_named(number):
    data, says = WRONG_HEADERS[number]
    with pytest.raises(FrameError, match=says):
        loads(data)


WRONG_STRUCTURES = [
    b"\xc1",
    extension(1, array_header("|O8", 1) + bytes(8)),
    extension(2, array_header("<f4", 257) + struct.pack("<Q", 0)),
    extension(77, b""),
    extension(127, pickle.dumps([1])),
]


@pytest.mark.parametrize("number", range(len(WRONG_STRUCTURES)))
def test_a_wrong_structure_is_a_frame_error(number):
    with pytest.raises(FrameError, match="not one that dumps"):
        loads(frame_of(WRONG_STRUCTURES[number], bytes(1024)))


def test_any_changed_byte_is_found():
    original = dumps([np.arange(4, dtype=np.int16), ("a", 1), {"k": np.float32(2)}])
    for offset in range(len(original)):
        for value in {0, 1, 0x7F, 0xFF, original[offset] ^ 1} - {original[offset]}:
            damaged = bytearray(original)
            damaged[offset] = value
            with pytest.raises(FrameError):
                loads(damaged)


def test_what_old_versions_wrote_by_pyarrow_is_to_be_written_again():
    with pytest.raises(FrameError, match="TENSORPACK_SERIALIZE=pickle"):
        loads(bytes(80))


@pytest.mark.parametrize("dump", [pickle.dumps, msgpack.packb])
def test_what_dumps_of_old_versions_wrote(dump):
    old = dump([1, "text" * 20, {"a": 2.5}])
    for allow in False, True:
        assert loads(old, allow_pickle=allow) == [1, "text" * 20, {"a": 2.5}]
    assert loads(dumps([1]), allow_pickle=True) == [1]
    with pytest.raises(FrameError, match=f"{len(old)} bytes, and 3 are allowed"):
        loads(old, max_bytes=3)
    with pytest.raises(FrameError, match="and a frame with"):
        load_frame(old)  # what comes from sockets


@pytest.mark.parametrize("bad", [pickle.dumps([Ellipsis.__class__]), b"", b"\x80\x04.", b"other"])
def test_what_is_in_no_value_of_old_versions_is_refused(bad):
    with pytest.raises(FrameError):
        loads(bad)
