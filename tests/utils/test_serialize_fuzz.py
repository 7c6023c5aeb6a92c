"""Damaged frames by the thousand: each is refused or gives plain objects, and runs no code.

Most of them have a right header and checksum, so that what lies behind is reached.
"""

import os
import pickle
import random
import struct

import numpy as np
import pytest

from tensorpack.utils.serialize import FrameError, dumps, loads
from tests.dataflow.flows import Canary
from tests.utils.frames import frame_of

msgpack = pytest.importorskip("msgpack")
pytestmark = pytest.mark.fault_row(31)

PLAIN = (type(None), bool, int, float, str, bytes, msgpack.Timestamp)

OBJECTS = [
    None,
    [1, -1, 2**40, 1.5, True, "text", b"bytes"],
    {"image": np.arange(12, dtype=np.uint8).reshape(3, 4), "label": 3, "names": ["a", "b"]},
    [np.arange(6, dtype=">i4").reshape(2, 3), np.zeros((2, 0), np.float32)],
    [np.zeros(2, "u1,<U2,M8[D]"), np.str_("a\0"), np.bytes_(b"b"), 2**70],
    (1, (2.5, ("three", [4, (5,)]))),
    {1: {2: {3: {4: [[[[{}]]]]}}}},
    [np.float32(1), np.int64(-1), np.bool_(True), np.str_("ab"), np.bytes_(b"cd")],
    [np.array(["ab", "c"]), np.array([b"ab", b"c"]), np.array([1j]), np.array([True, False])],
    [np.arange(200, dtype=np.int32)],
    [np.arange(600, dtype=np.uint8), {"k": (np.arange(70.0).reshape(7, 10), "x")}],
]

# Overwriting and inserting these, damage hits what has a meaning more often than by chance.
TOKENS = (
    [bytes([value]) for value in (*range(0x90, 0x94), *range(0x80, 0x84), *range(0xC0, 0xE0))]
    + [struct.pack("<Q", value) for value in (0, 1, 2**31, 2**32, 2**62, 2**63, 2**64 - 1)]
    + [struct.pack(">I", value) for value in (0, 1, 255, 1024, 2**31, 2**32 - 1)]
    + [b"\xc7\x04" + bytes([code]) for code in (0, 1, 2, 3, 4, 5, 255)]
    + [b"\xd4" + bytes([code]) for code in (1, 2, 3, 4, 127, 128, 255)]
    + [b"\xd6\xff\x00\x00\x00\x00", b"\x81" * 40, b"\x91" * 40, b"\xdd\x00\x00\x01\x00" * 20]
    + [b"|O8", b"|V8", b"<M8", b"|S0", b"<U0", b"<f8", b"<U9", b"|b1", b"<c16", b"\x03\x20<f8"]
)


def parts():
    """The structures of good frames, each with what follows it, and pickles in their place."""
    found = []
    for obj in OBJECTS:
        frame = dumps(obj)
        (length,) = struct.unpack_from("<Q", frame, 16)
        found.append((frame[64 : 64 + length], frame[64 + -(-length // 64) * 64 :]))
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        payload = pickle.dumps([Canary()], protocol)
        found.append((payload, b""))
        found.append((b"\xc7" + bytes([len(payload), 1]) + payload, b""))
    return found


def damage(rng, data, other):
    """Changes bytes a few times."""
    data = bytearray(data)
    for _ in range(1 + int(3 * rng.random())):
        kind, at = rng.random(), int(rng.random() * (len(data) + 1))
        if kind < 0.4:
            data[at : at + 1] = bytes([int(256 * rng.random())])
        elif kind < 0.6:
            token = TOKENS[int(rng.random() * len(TOKENS))]
            data[at : at + len(token)] = token
        elif kind < 0.75:
            data[at:at] = TOKENS[int(rng.random() * len(TOKENS))]
        elif kind < 0.85:
            del data[at : at + 1 + int(8 * rng.random())]
        elif kind < 0.95:
            data[at:] = other[at:]
        else:
            del data[at:]
    return bytes(data)


def damaged_frame(rng, frames):
    """One frame: mostly of a damaged structure or area, else damaged as a whole."""
    structure, area = frames[int(rng.random() * len(frames))]
    other = frames[int(rng.random() * len(frames))]
    kind = rng.random()
    if kind < 0.8:
        return frame_of(damage(rng, structure, other[0]), area)
    if kind < 0.85:
        return frame_of(structure, damage(rng, area, other[1]))
    if kind < 0.9:
        length = int(rng.choice((1, 64, 2**63)) * rng.random() * 1.99)
        return frame_of(structure, area, structure=length)
    if kind < 0.92:
        return frame_of(structure, area, frame=rng.getrandbits(64))
    if kind < 0.97:
        return damage(rng, frame_of(structure, area), frame_of(*other))
    return bytes(rng.getrandbits(8) for _ in range(int(200 * rng.random())))


def check_plain(obj):
    """Raises unless an object is made of what frames may hold; reads every byte of its arrays."""
    todo = [obj]
    while todo:
        each = todo.pop()
        kind = type(each)
        if kind is list or kind is tuple:
            todo.extend(each)
        elif kind is dict:
            todo.extend(each)
            todo.extend(each.values())
        elif kind is np.ndarray or isinstance(each, np.generic):
            assert each.dtype.kind in "biufcSUmMV", each.dtype
            each.tobytes()
        else:
            assert kind in PLAIN, kind


def test_good_frames_are_made_again_from_their_parts():
    assert [frame_of(*each) for each in parts()[: len(OBJECTS)]] == list(map(dumps, OBJECTS))
    for obj in OBJECTS:
        check_plain(loads(dumps(obj)))


def test_damaged_frames(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng, frames, read, count = random.Random(0), parts(), 0, 20000
    for number in range(count):
        try:
            obj = loads(damaged_frame(rng, frames), copy=number % 2 == 0)
        except FrameError:
            continue
        check_plain(obj)
        read += 1
    assert count * 0.02 < read < count * 0.5  # neither trivially good nor stopped at the header
    assert not os.path.exists("canary")
