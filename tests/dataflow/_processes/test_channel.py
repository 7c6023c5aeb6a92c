"""What goes in at one end comes out at the other, and stays as it is while anybody looks at it."""

import array as arrays
import errno
import fcntl
import gc
import os
import random
import struct
import sys
import termios
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.dataflow._processes.channel import FIRST_EVENT, OBJECT, Limits
from tensorpack.dataflow._processes.descriptor import SharedFile
from tensorpack.dataflow._processes.receiver import make_channel
from tensorpack.dataflow._processes.sender import Interrupted
from tensorpack.utils.packed import Rows, pack
from tests.contracts.dataflow import assert_same
from tests.dataflow.helpers import stays_as_it_is

SIZE = 10000
MIB = 1 << 20
PLENTY = 1 << 30
SIZES = (100, 600, 5000, 60000, 70000, 200000)


class Channel:
    """Both ends in one process."""

    def __init__(self, slots=4, items=1, nbytes=PLENTY, interrupt=None):
        self.sender, self.receiver = make_channel(Limits(slots, items, nbytes))
        self.sender.stays(interrupt)
        self.receiver.stays()

    def send(self, number, size=SIZE):
        """Sends an array filled with a number if there is room; returns whether there was."""
        self.receiver.return_slots()
        return self.sender.offer(pack([full(number, size)]), number)

    def put(self, obj, tag=0):
        """Sends an object; waits for room."""
        self.receiver.return_slots()
        self.sender.send(obj, tag)

    def take(self):
        """Returns what is there next; None if nothing is."""
        item = self.receiver.take()
        while item is None and self.receiver.receive():
            item = self.receiver.take()
        return item

    def array(self):
        """Returns the array that is there next."""
        kind, _, (found,) = self.take()
        assert kind == OBJECT
        return found

    def exchange(self, number, size=SIZE):
        """Sends and returns an array; there must be room after the receiver has waited."""
        if not self.send(number, size):
            assert self.take() is None
            self.receiver.is_waiting()
            assert self.send(number, size), "the channel is stuck"
        return self.array()

    def room(self):
        """How many arrays can be sent before one is taken; takes them all."""
        sent = 0
        while self.send(sent):
            sent += 1
        for number in range(sent):
            check(self.array(), number)
        return sent

    def allocated(self):
        """How many bytes of memory it takes."""
        fds = [file._descriptor.fd for file in self.sender._files]
        return sum(os.fstat(fd).st_blocks for fd in fds) * 512

    def close(self):
        self.sender.close()
        self.receiver.close()


@pytest.fixture
def make():
    """Makes channels; closes them at the end."""
    channels = []

    def make(*args, **options):
        channels.append(Channel(*args, **options))
        return channels[-1]

    yield make
    for channel in channels:
        channel.close()


def full(number, size=SIZE):
    return np.full(size, number % 251, np.uint8)


def check(array, number):
    assert array.min() == array.max() == number % 251


OBJECTS = [
    None,
    True,
    -(2**63),
    2**64 - 1,
    0.1,
    "äöü" * 500,
    b"\0" * 2000,
    [],
    (),
    {},
    [1, [2, (3, {"four": None, 5: (6,)})]],
    np.zeros((0, 5), np.float16),
    np.array(3.5),
    np.float32(1.5),
    np.array(["one", "three"]),
    np.arange(24.0).reshape(2, 3, 4),
    np.arange(9000, dtype=">i4").reshape(30, 300).T,
    np.zeros((70, 80), np.bool_)[::3, ::-2],
    {"image": np.ones((50, 60, 3), np.uint8), "label": 3, "names": ["a", "b"]},
]


@pytest.mark.parametrize("obj", OBJECTS, ids=[str(i) for i in range(len(OBJECTS))])
def test_an_object_comes_out_as_it_went_in(make, obj):
    channel = make(slots=1)
    for tag in 0, 2**64 - 1:
        channel.put(obj, tag)
        kind, found_tag, found = channel.take()
        assert (kind, found_tag) == (OBJECT, tag)
        assert_same(found, obj)
        del found


@pytest.mark.parametrize(
    "obj, where",
    [
        ([1, object()], r"^\[1\]: a object cannot be sent"),
        (
            {"a": [np.array([None])]},
            r"^\['a'\]\[0\]: an array of object with 1 dimensions cannot be sent",
        ),
        (2**64, "an integer of 65 bits cannot be sent"),
    ],
)
def test_what_cannot_be_sent_is_named_and_does_no_harm(make, obj, where):
    channel = make(slots=1)
    for _ in range(3):
        with pytest.raises(TypeError, match=where):
            channel.put(obj)
        check(channel.exchange(1), 1)


def test_objects_and_events_come_in_order(make):
    channel = make(slots=2, items=3)
    for number in range(5):
        channel.put([number], number)
        channel.sender.event(FIRST_EVENT + number, 100 + number)
    found = [channel.take() for _ in range(10)]
    assert found[::2] == [(OBJECT, number, [number]) for number in range(5)]
    assert found[1::2] == [(FIRST_EVENT + number, 100 + number, None) for number in range(5)]
    assert channel.take() is None


@pytest.mark.parametrize("items", [1, 3])
def test_arrays_are_aligned_and_nobody_can_write_to_them(make, items):
    channel = make(slots=8, items=items)
    kept = []
    for size in range(500, 4000, 97):  # from some on they are copies
        channel.put([full(size, size), np.arange(size + 0.5), {"x": np.ones(size, ">f8")}])
        first, second, inner = channel.take()[2]
        for array in first, second, inner["x"]:
            assert stays_as_it_is(array)
            assert array.nbytes <= 512 or array.ctypes.data % 64 == 0
            with pytest.raises(ValueError):
                array.setflags(write=True)
                array[0] = 0
        kept.append((size, first, second, inner["x"]))
    for size, first, second, third in kept:
        check(first, size)
        np.testing.assert_array_equal(second, np.arange(size + 0.5))
        assert set(third) == {1}


def test_arrays_are_views_of_the_slot(make):
    channel = make()
    array = channel.exchange(1)
    assert isinstance(array.base, np.ndarray) and isinstance(array.base.base, memoryview)
    assert array.base.size >= SIZE


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
def test_what_anybody_looks_at_is_not_written_to(make, name):
    channel = make(slots=4)
    view = VIEWS[name](channel.exchange(7))
    for number in range(20):
        check(channel.exchange(number), number)
    assert channel.room() == 3
    assert set(np.array(view).tobytes()) == {7}
    del view
    gc.collect()
    assert channel.room() == 4


def test_a_slot_comes_back_after_the_last_of_its_objects(make):
    channel = make(slots=1, items=3)
    kept = []
    for number in range(3):
        assert channel.send(number)
    assert not channel.send(3)
    for _ in range(2):
        channel.array()
        assert not channel.send(3)
    kept = channel.array()  # a copy, as there is no other slot
    assert channel.send(3)
    check(kept, 2)


def test_a_slot_that_is_left_early_comes_back(make):
    channel = make(slots=2, items=100)
    for number in range(50):  # again and again one is larger than what is left of the slot
        assert channel.send(number, SIZE * (number + 1))
        check(channel.array(), number)
    assert channel.allocated() < 12 * MIB


def test_a_slot_that_nothing_came_into_is_not_lost(make):
    channel = make(slots=1, items=2)
    for number, size in enumerate([20 * SIZE, 100 * SIZE, 300 * SIZE]):
        with pytest.raises(ValueError, match="broadcast"):
            channel.put([Rows([np.zeros(2000), np.zeros(2001)], np.dtype("f8"))])
        check(channel.exchange(number, size), number)


def test_a_slot_is_not_lost_when_there_is_no_memory(make, monkeypatch):
    def refuse(file, nbytes):
        raise OSError(errno.ENOSPC, "No room")

    channel = make(slots=1)
    check(channel.exchange(1), 1)
    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(SharedFile, "resize", refuse)
            with pytest.raises(OSError, match="No room"):
                channel.send(1, 100 * SIZE)
    check(channel.exchange(2, 100 * SIZE), 2)


@pytest.mark.parametrize("slots, items", [(1, 1), (2, 1), (3, 2), (5, 4), (16, 1)])
@pytest.mark.parametrize("nbytes", [1, 50000, PLENTY])
def test_a_consumer_may_keep_everything(make, slots, items, nbytes):
    channel = make(slots, items, nbytes)
    kept = [channel.exchange(number) for number in range(100)]
    for number, array in enumerate(kept):
        check(array, number)


def test_a_consumer_may_keep_a_little_of_everything(make):
    channel = make(slots=4, nbytes=100 * SIZE)
    kept = [channel.exchange(number, SIZE + number)[number : number + 1] for number in range(300)]
    assert [int(array[0]) for array in kept] == [number % 251 for number in range(300)]


def test_what_is_kept_in_another_thread_stays(make):
    channel = make(slots=4)
    kept = {1: channel.exchange(1), 2: channel.exchange(2)}
    gone, go_on = threading.Event(), threading.Event()
    wrong = []

    def run():
        check(kept.pop(1), 1)
        gone.set()
        go_on.wait(30)
        array = kept.pop(2)
        wrong.extend(set(array) - {2})

    thread = threading.Thread(target=run)
    thread.start()
    assert gone.wait(30)
    for number in range(50):
        check(channel.exchange(number), number)
    go_on.set()
    thread.join()
    assert wrong == []
    assert channel.room() == 4


def test_threads_that_drop_arrays_do_not_lose_slots(make):
    channel = make(slots=16)
    queue, done = [], threading.Event()

    def drop():
        while not done.is_set() or queue:
            if queue:
                queue.pop()
            time.sleep(0)

    threads = [threading.Thread(target=drop) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(500):
        while not channel.send(number, 600):
            time.sleep(0)
        queue.append(channel.array())
    done.set()
    for thread in threads:
        thread.join()
    assert channel.room() == 16


@pytest.mark.parametrize("look", ["take", "is_waiting", "return_slots"])
def test_slots_go_back_when_somebody_looks(make, look):
    channel = make(slots=3)
    kept = [channel.exchange(1), channel.exchange(2)]
    kept.clear()

    def room():
        return sum(channel.sender.offer(pack([full(0)])) for _ in range(4))

    assert room() == 1
    getattr(channel.receiver, look)()
    assert room() == 2


def test_no_code_of_ours_runs_where_an_array_goes(make):
    """What a signal handler raises there would be lost, such as a KeyboardInterrupt."""
    channel = make(slots=3)
    kept = [channel.exchange(1)]
    called = []
    sys.setprofile(lambda frame, event, arg: called.append((event, frame.f_code.co_name)))
    try:
        kept.clear()
    finally:
        sys.setprofile(None)
    assert [name for event, name in called if event == "call"] == []
    assert len(channel.receiver._freed) == 1


def test_memory_is_bounded_over_many_objects(make):
    channel = make(slots=8, items=4)
    last = []
    for number in range(10000):
        last = [*last[-2:], channel.exchange(number, 1000)]
    assert channel.allocated() <= 8 * (1 << 16)
    assert len(channel.receiver._held) <= 3


@pytest.mark.parametrize("items", [1, 5])
@pytest.mark.parametrize("nbytes", [MIB, 4 * MIB])
def test_a_consumer_that_does_not_come_lets_no_more_than_the_bound_wait(make, nbytes, items):
    channel = make(slots=16, items=items, nbytes=nbytes)
    sent = 0
    while channel.send(sent, 100000):
        sent += 1
    assert channel.allocated() <= nbytes
    assert sent >= min(16 * items, nbytes // 200000)
    for number in range(sent):
        check(channel.array(), number)


@pytest.mark.parametrize("size, most", [(300000, MIB), (900000, 2 * MIB)])
def test_one_that_keeps_all_is_allowed_one_more_than_the_bound(make, size, most):
    channel = make(slots=16, nbytes=MIB)
    kept = [channel.exchange(number, size) for number in range(20)]
    assert channel.allocated() <= most
    for number, array in enumerate(kept):
        check(array, number)


def test_an_object_may_be_larger_than_the_bound(make):
    channel = make(slots=4, nbytes=1000)
    for number in range(5):
        check(channel.exchange(number, 10 * SIZE * (1 + number % 2)), number)
    assert channel.allocated() <= 3 * 10 * SIZE + (1 << 16)


def test_large_slots_are_given_up_for_others(make):
    channel = make(slots=4, nbytes=MIB)
    assert [channel.send(number, 300000) for number in range(4)] == [True] * 3 + [False]
    for number in range(3):
        check(channel.array(), number)
    check(channel.exchange(9, 900000), 9)
    assert channel.allocated() <= MIB


def test_it_says_once_that_it_waits(make):
    """A sender that is stopped does not listen: the pipe must not fill."""
    channel = make(slots=8)
    kept = []
    for number in range(5):
        kept.append(channel.exchange(number))
        for _ in range(20000):
            channel.receiver.is_waiting()
    buffer = arrays.array("i", [0])
    fcntl.ioctl(channel.sender.waits_for, termios.FIONREAD, buffer)
    assert buffer[0] <= 4 * 10


class TestInterrupts:
    def test_a_send_that_waits_is_interrupted_and_loses_nothing(self, make):
        reader, writer = os.pipe()
        channel = make(slots=2, interrupt=reader)
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
        os.close(reader)
        os.close(writer)

    def test_it_is_interrupted_while_it_waits(self, make):
        reader, writer = os.pipe()
        channel = make(slots=1, interrupt=reader)
        channel.put([full(0)])
        timer = threading.Timer(0.1, os.write, (writer, b"."))
        timer.start()
        with pytest.raises(Interrupted):
            channel.put([full(1)])
        timer.join()
        os.close(reader)
        os.close(writer)

    def test_so_is_one_that_has_room(self, make):
        reader, writer = os.pipe()
        channel = make(slots=1, items=1000, interrupt=reader)
        channel.put([0])
        os.write(writer, b".")
        with pytest.raises(Interrupted):
            channel.put([1])
        assert channel.take()[2] == [0]
        assert channel.take() is None
        os.close(reader)
        os.close(writer)

    def test_a_send_waits_for_room(self, make):
        channel = make(slots=1)
        channel.put([full(1)])
        thread = threading.Thread(target=channel.sender.send, args=([full(2)],))
        thread.start()
        check(channel.array(), 1)
        channel.receiver.return_slots()
        thread.join(30)
        assert not thread.is_alive()
        check(channel.array(), 2)


def test_what_was_sent_comes_out_after_the_sender_is_gone(make):
    channel = make(slots=4, items=2)
    for number in range(3):
        channel.send(number)
    channel.sender.close()
    assert not channel.receiver.ended
    kept = [channel.array() for _ in range(3)]
    assert not channel.receiver.ended  # nobody has looked yet
    assert channel.take() is None
    assert channel.receiver.ended
    for number, array in enumerate(kept):
        check(array, number)


def test_a_sender_hears_that_nobody_is_there(make):
    channel = make(slots=1)
    channel.send(1)
    channel.receiver.close()
    with pytest.raises(BrokenPipeError):
        channel.put([full(2)])


def test_arrays_outlive_the_channel(make):
    before = sorted(os.listdir("/proc/self/fd"))
    channel = make(slots=4)
    kept = [channel.exchange(number) for number in range(6)]
    channel.send(9)
    channel.close()
    channel.close()
    for number, array in enumerate(kept):
        check(array, number)
    kept.clear()
    del array
    gc.collect()
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_nothing_is_written_to_what_has_the_numbers_of_closed_pipes(make):
    channel = make(slots=4)
    kept = channel.exchange(1)
    back = channel.receiver._back.fileno()
    reader, writer = os.pipe()
    channel.close()
    os.dup2(writer, back)
    os.set_blocking(reader, False)
    del kept
    with pytest.raises(BlockingIOError):
        os.read(reader, 1)
    for fd in reader, writer, back:
        os.close(fd)


def in_fork(function):
    """Calls a function in a copy of this process; returns whether it came back."""
    pid = os.fork()
    if not pid:
        try:
            function()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def test_a_forked_copy_gives_nothing_back(make):
    channel = make(slots=4)
    kept = [channel.exchange(1)]

    def drop():
        kept.clear()
        channel.receiver.close()

    assert in_fork(drop)
    assert channel.room() == 3
    check(kept[0], 1)


def test_too_few_descriptors_leave_none_open(monkeypatch):
    copies = []

    def copy(file, original=SharedFile.copy):
        copies.append(file)
        if len(copies) == 5:
            raise OSError(errno.EMFILE, "Too many open files")
        return original(file)

    before = sorted(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(SharedFile, "copy", copy)
    with pytest.raises(OSError, match="Too many"):
        make_channel(Limits(8, 1, PLENTY))
    copies.clear()
    gc.collect()
    assert sorted(os.listdir("/proc/self/fd")) == before


@settings(max_examples=60)
@given(
    slots=st.integers(1, 6),
    items=st.integers(1, 4),
    nbytes=st.sampled_from([1, 100000, 400000, PLENTY]),
    seed=st.integers(0, 2**32),
)
def test_it_never_gets_stuck_and_keeps_what_is_kept(slots, items, nbytes, seed):
    """Any number of objects on the way, of any size, and any of them kept for any time."""
    rng = random.Random(seed)
    channel = Channel(slots, items, nbytes)
    kept, sent, taken = {}, 0, 0
    try:
        while taken < 60:
            while sent < taken + rng.randint(1, 5) and channel.send(sent, rng.choice(SIZES)):
                sent += 1
            if sent == taken:
                assert channel.take() is None
                channel.receiver.is_waiting()
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


@given(items=st.integers(1, 5000), nbytes=st.integers(1, 2**33), channels=st.integers(1, 200))
def test_limits_divide_what_may_be_on_the_way(items, nbytes, channels):
    limits = Limits.of(items, nbytes, channels)
    share = min(-(-items // channels), 1000)
    assert 1 <= limits.slots <= 16 and limits.items >= 1
    assert share <= limits.slots * limits.items < share + limits.items
    assert limits.nbytes == nbytes // channels


def test_few_items_have_a_slot_each():
    assert [Limits.of(n, 0)[:2] for n in (1, 2, 16, 17, 32, 1000)] == [
        (1, 1),
        (2, 1),
        (16, 1),
        (9, 2),
        (16, 2),
        (16, 63),
    ]
    assert Limits.of(10000, 0, 64)[:2] == (3, 53)  # descriptors are few


def test_a_record_has_its_size():
    assert struct.calcsize("<BxHIQQQQ") == 40
