"""What goes in at one end of a channel comes out at the other; memory is bounded, and returned."""

import gc
import os
import random
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.dataflow._processes import shared_memory
from tensorpack.dataflow._processes.channel import Limits, make_channels
from tensorpack.dataflow._processes.pickled import Packed
from tests.processes import in_thread, named_memory, open_files

SIZE = 10000
MIB = 1 << 20
PLENTY = 1 << 30


class Channel:
    """Both ends in one process."""

    def __init__(self, slots=4, items=None, nbytes=PLENTY):
        self.sender, self.receiver = make_channels(Limits(slots, items or slots, nbytes))[0]
        self.sender.attach(blocks=True)
        self.receiver.attach()

    def send(self, number, size=SIZE):
        """Sends an array filled with a number if there is room; returns whether there was."""
        self.receiver.return_slots()
        return self.sender.offer(Packed([full(number, size)]), number)

    def take(self):
        """Returns what is there next; None if nothing is."""
        item = self.receiver.take()
        while item is None and self.receiver.receive():
            item = self.receiver.take()
        return item

    def array(self):
        """Returns the array that is there next."""
        _, (array,) = self.take()
        return array

    def exchange(self, number, size=SIZE):
        """Sends and returns an array; there must be room after the receiver has waited."""
        if not self.send(number, size):
            assert self.take() is None
            self.receiver.return_slots()
            assert self.send(number, size), "the channel is stuck"
        return self.array()

    def fill(self, size=SIZE):
        """Returns how many arrays can be sent before one is taken; takes them all."""
        sent = 0
        while self.send(sent, size):
            sent += 1
        for number in range(sent):
            check(self.array(), number)
        return sent

    def allocated(self):
        """How many bytes of memory it takes."""
        fds = [file.fd for file in self.sender._files]
        return sum(os.fstat(fd).st_blocks for fd in fds) * 512

    def close(self):
        self.sender.close()
        self.receiver.close()


def full(number, size=SIZE):
    return np.full(size, number % 251, np.uint8)


def check(array, number):
    assert array.min() == array.max() == number % 251


@pytest.fixture
def open_channel():
    """Opens channels; closes them at the end."""
    channels = []

    def make(*args, **options):
        channels.append(Channel(*args, **options))
        return channels[-1]

    yield make
    for channel in channels:
        channel.close()


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


VIEWS = {
    "array": lambda array: array,
    "slice": lambda array: array[5000:5001],
    "reshaped": lambda array: array.reshape(100, 100).T[::7],
    "other dtype": lambda array: array.view(np.int64),
    "memoryview": memoryview,
    "of a memoryview": lambda array: np.frombuffer(memoryview(array)[3:], np.uint8),
    "iterator": lambda array: array.flat,
    "subclass": lambda array: array.view(np.recarray),
    "broadcast": lambda array: np.broadcast_to(array, (3, SIZE)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_what_anybody_looks_at_is_not_written_to(open_channel, name):
    channel = open_channel(slots=4)
    views = [VIEWS[name](channel.exchange(7))]
    for number in range(20):
        check(channel.exchange(number), number)
    assert channel.fill() == 3
    assert set(np.array(views[0]).tobytes()) == {7}
    in_thread(views.clear)[0].join()  # which any thread may do
    gc.collect()
    assert channel.fill() == 4


def test_no_code_of_ours_runs_where_an_array_goes(open_channel):
    """What a signal handler raises there would be lost, such as a KeyboardInterrupt."""
    channel = open_channel(slots=3)
    kept = [channel.exchange(1)]
    called = []
    sys.setprofile(lambda frame, event, arg: called.append((event, frame.f_code.co_name)))
    try:
        kept.clear()
    finally:
        sys.setprofile(None)
    assert [name for event, name in called if event == "call"] == []
    assert len(channel.receiver._freed) == 1


def test_small_slots_are_returned_several_at_a_time_and_large_ones_at_once(open_channel):
    channel = open_channel(slots=16, items=100)
    waiting = {}
    for size in (SIZE, 2 * MIB):
        waiting[size] = []
        for number in range(7):
            assert channel.sender.offer(Packed([full(number, size)]))
            check(channel.array(), number)
            waiting[size].append(len(channel.receiver._freed))
        channel.receiver.return_slots()
    assert waiting == {SIZE: [1, 2, 3, 4, 5, 1, 2], 2 * MIB: [1] * 7}


@pytest.mark.parametrize("nbytes", [MIB, 4 * MIB])
def test_a_consumer_that_does_not_come_lets_no_more_than_the_bound_wait(open_channel, nbytes):
    channel = open_channel(slots=16, nbytes=nbytes)
    assert channel.fill(100000) >= min(16, nbytes // 200000)
    assert channel.allocated() <= nbytes


@pytest.mark.parametrize("size, most", [(300000, MIB), (900000, 2 * MIB)])
def test_one_that_keeps_all_is_allowed_one_more_than_the_bound(open_channel, size, most):
    channel = open_channel(slots=16, nbytes=MIB)
    kept = [channel.exchange(number, size) for number in range(20)]
    assert channel.allocated() <= most
    for number, array in enumerate(kept):
        check(array, number)


def test_large_slots_are_given_up_for_others(open_channel):
    channel = open_channel(slots=4, nbytes=MIB)
    assert channel.fill(300000) == 3
    check(channel.exchange(9, 900000), 9)
    assert channel.allocated() <= MIB


@pytest.mark.parametrize("system", ["memfd", "/dev/shm", "a folder", "macOS"])
def test_the_memory_has_no_name(system, monkeypatch, tmp_path):
    if system != "memfd":
        monkeypatch.delattr(os, "memfd_create", raising=False)
    if system == "macOS":
        monkeypatch.delattr(os, "posix_fallocate")
    if system == "a folder":
        monkeypatch.setattr(shared_memory, "_SHM", str(tmp_path / "none"))
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    gc.collect()  # of tests before
    before = named_memory(), open_files()
    channel = Channel()
    array = channel.exchange(7)
    assert named_memory() == before[0] and list(tmp_path.iterdir()) == []
    channel.close()
    check(array, 7)
    del array
    assert open_files() == before[1]
