"""What goes in at one end comes out at the other, whatever becomes of the ends."""

import os
import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.dataflow._processes.channel import Limits
from tests.dataflow._processes.channels import PLENTY, Channel, check, full
from tests.processes import in_fork


def test_what_cannot_be_sent_does_no_harm(open_channel):
    channel = open_channel(slots=1)
    for _ in range(3):
        with pytest.raises(TypeError, match=r"^\[1\]: a lock cannot be pickled"):
            channel.put([1, threading.Lock()])
        check(channel.exchange(1), 1)


def test_objects_come_in_order_with_their_tags(open_channel):
    channel = open_channel(slots=2, items=8)
    tags = range(2**64 - 5, 2**64)
    for number, tag in enumerate(tags):
        channel.put([number], tag)
    assert [channel.take() for _ in tags] == [(tag, [i]) for i, tag in enumerate(tags)]
    assert channel.take() is None


def test_a_sender_hears_that_the_receiver_is_gone(open_channel):
    channel = open_channel(slots=1)
    channel.send(1)
    channel.receiver.close()
    with pytest.raises(BrokenPipeError):
        channel.put([full(2)])


def test_nothing_is_written_to_what_has_the_numbers_of_closed_pipes(open_channel):
    channel = open_channel(slots=4)
    kept = channel.exchange(1)
    back = channel.receiver._returned.fd
    reader, writer = os.pipe()
    channel.close()
    os.dup2(writer, back)
    os.set_blocking(reader, False)
    del kept
    with pytest.raises(BlockingIOError):
        os.read(reader, 1)
    for fd in reader, writer, back:
        os.close(fd)


def test_a_forked_copy_gives_nothing_back(open_channel):
    channel = open_channel(slots=4)
    kept = [channel.exchange(1)]

    def drop():
        kept.clear()
        channel.receiver.close()

    assert in_fork(drop)
    assert channel.room() == 3
    check(kept[0], 1)


SIZES = (100, 600, 5000, 60000, 70000, 200000)


@settings(max_examples=60)
@given(
    slots=st.integers(1, 6),
    more=st.integers(0, 4),
    nbytes=st.sampled_from([1, 100000, 400000, PLENTY]),
    seed=st.integers(0, 2**32),
)
def test_it_never_gets_stuck_and_keeps_what_is_kept(slots, more, nbytes, seed):
    """Any number of objects on the way, of any size, and any of them kept for any time."""
    rng = random.Random(seed)
    channel = Channel(slots, slots + more, nbytes)
    kept, sent, taken = {}, 0, 0
    try:
        while taken < 60:
            while sent < taken + rng.randint(1, 5) and channel.send(sent, rng.choice(SIZES)):
                sent += 1
            if sent == taken:
                assert channel.take() is None
                channel.receiver.return_slots()
                assert channel.send(sent, rng.choice(SIZES)), "the channel is stuck"
                sent += 1
            kept[taken] = channel.array()
            taken += 1
            for number in rng.sample(sorted(kept), rng.randint(0, len(kept)) // 3):
                check(kept.pop(number), number)
        for number, array in kept.items():
            check(array, number)
    finally:
        channel.close()


@given(items=st.integers(1, 5000), nbytes=st.integers(1, 2**33), workers=st.integers(1, 200))
def test_limits_divide_what_may_be_on_the_way(items, nbytes, workers):
    limits = Limits.of(items, nbytes, workers)
    share = min(-(-items // workers), 1000)
    assert limits.items == share and 1 <= limits.slots <= min(share, 16)
    assert limits.nbytes == nbytes // workers
