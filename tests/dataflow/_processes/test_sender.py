"""A sender has no more memory than it may, loses none of it, and can be interrupted."""

import errno
import os

import numpy as np
import pytest

from tensorpack.dataflow._processes.channel import Interrupted
from tensorpack.dataflow._processes.shared_memory import SharedFile
from tensorpack.dataflow._stack import Rows
from tests.dataflow._processes.channels import MIB, SIZE, check, full


def test_a_slot_that_nothing_came_into_is_not_lost(open_channel):
    channel = open_channel(slots=1)
    for number, size in enumerate([20 * SIZE, 100 * SIZE, 300 * SIZE]):
        with pytest.raises(ValueError, match="broadcast"):
            channel.put([Rows([np.zeros(2000), np.zeros(2001)], np.dtype("f8"))])
        check(channel.exchange(number, size), number)


def test_a_slot_is_not_lost_when_there_is_no_memory(open_channel, monkeypatch):
    def refuse(file, nbytes):
        raise OSError(errno.ENOSPC, "No room")

    channel = open_channel(slots=1)
    check(channel.exchange(1), 1)
    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(SharedFile, "resize", refuse)
            with pytest.raises(OSError, match="No room"):
                channel.send(1, 100 * SIZE)
    check(channel.exchange(2, 100 * SIZE), 2)


@pytest.mark.parametrize("nbytes", [MIB, 4 * MIB])
def test_a_consumer_that_does_not_come_lets_no_more_than_the_bound_wait(open_channel, nbytes):
    channel = open_channel(slots=16, nbytes=nbytes)
    sent = 0
    while channel.send(sent, 100000):
        sent += 1
    assert channel.allocated() <= nbytes
    assert sent >= min(16, nbytes // 200000)
    for number in range(sent):
        check(channel.array(), number)


@pytest.mark.parametrize("size, most", [(300000, MIB), (900000, 2 * MIB)])
def test_one_that_keeps_all_is_allowed_one_more_than_the_bound(open_channel, size, most):
    channel = open_channel(slots=16, nbytes=MIB)
    kept = [channel.exchange(number, size) for number in range(20)]
    assert channel.allocated() <= most
    for number, array in enumerate(kept):
        check(array, number)


def test_large_slots_are_given_up_for_others(open_channel):
    channel = open_channel(slots=4, nbytes=MIB)
    assert [channel.send(number, 300000) for number in range(4)] == [True] * 3 + [False]
    for number in range(3):
        check(channel.array(), number)
    check(channel.exchange(9, 900000), 9)
    assert channel.allocated() <= MIB


class TestInterrupts:
    @pytest.fixture
    def pipe(self):
        ends = os.pipe()
        yield ends
        for end in ends:
            os.close(end)

    def test_a_send_that_waits_is_interrupted_and_loses_nothing(self, open_channel, pipe):
        reader, writer = pipe
        channel = open_channel(slots=2, interrupt=reader)
        channel.put([full(0)], 0)
        channel.put([full(1)], 1)
        os.write(writer, b".")
        for _ in range(3):
            with pytest.raises(Interrupted):
                channel.put([full(2)], 2)
        for number in range(2):
            check(channel.array(), number)
        os.read(reader, 1)
        channel.put([full(3)], 3)
        check(channel.array(), 3)

    def test_so_is_one_that_has_room(self, open_channel, pipe):
        reader, writer = pipe
        channel = open_channel(slots=1, items=1000, interrupt=reader)
        channel.put([0])
        os.write(writer, b".")
        with pytest.raises(Interrupted):
            channel.put([1])
        assert channel.take()[1] == [0]
        assert channel.take() is None
