"""Messages come back as they were; a stream ends when all of its senders have said so."""

import os

import numpy as np
import pytest

from tensorpack.dataflow._remote.message import (
    DATA,
    END,
    PART_BYTES,
    SYNC,
    Answer,
    Message,
    Senders,
    decode,
    encode,
    split,
)
from tensorpack.utils.serialize import MAX_BYTES, FrameError, dumps

pytest.importorskip("msgpack")

A, B = b"a" * 16, b"b" * 16


@pytest.mark.parametrize(
    "message",
    [Message(SYNC, A, 0), Message(DATA, A, 5, [1, (2,), {"k": "v"}]), Message(END, B, 2**40)],
)
def test_a_message_comes_back(message):
    assert decode(encode(message), MAX_BYTES) == message


@pytest.mark.parametrize(
    "obj",
    [
        None,
        {},
        [],
        (DATA, A, 0, None),
        [DATA, A, 0],
        [DATA, A, 0, None, None],
        [3, A, 0, None],
        [-1, A, 0, None],
        [True, A, 0, None],
        [1.0, A, 0, None],
        [[], A, 0, None],
        [DATA, A[:15], 0, None],
        [DATA, "a" * 16, 0, None],
        [DATA, None, 0, None],
        [DATA, A, -1, None],
        [DATA, A, 1.0, None],
        [DATA, A, False, None],
        [DATA, A, np.int64(1), None],
    ],
)
def test_a_frame_that_is_not_a_message(obj):
    with pytest.raises(FrameError, match="not a message|A message "):
        decode(dumps(obj), MAX_BYTES)


def test_a_frame_is_cut_into_parts():
    for size, parts in (0, 1), (PART_BYTES, 1), (PART_BYTES + 1, 2), (3 * PART_BYTES, 3):
        frame = os.urandom(size)
        cut = split(frame)
        assert len(cut) == parts and b"".join(cut) == frame


def test_an_answer_comes_back_and_other_bytes_are_none():
    answer = Answer(DATA, B, 3, MAX_BYTES, 2**40)
    assert Answer.decode(answer.encode()) == answer
    for other in b"", answer.encode()[:-1], answer.encode() + b"x":
        assert Answer.decode(other) is None


def test_a_sender_that_ends_twice_is_one():
    senders = Senders(2)
    for kind, sender in [(DATA, A), (END, A), (DATA, A), (END, A), (DATA, B)]:
        senders.note(Message(kind, sender, 0))
        assert not senders.take_end()
    for kind in END, DATA, END:  # and each of its ends is that of a pass
        senders.note(Message(kind, B, 1))
        assert senders.take_end() == (kind == END)


def test_the_number_of_senders_is_limited():
    senders = Senders(1)
    for number in range(10000):
        senders.note(Message(DATA, number.to_bytes(16, "big"), 0))
    with pytest.raises(FrameError, match="one more sender than 10000"):
        senders.note(Message(DATA, A, 0))
    senders.note(Message(DATA, bytes(16), 1))  # one that is known continues
    assert len(senders.open) == 10000
