"""What a channel gives stays as it is while anybody looks at it, and its memory goes back."""

import gc
import sys
import threading

import numpy as np
import pytest

from tensorpack.dataflow._processes.pickled import pack
from tensorpack.utils.packing.packed_arrays import stays_as_it_is
from tests.dataflow._processes.channels import SIZE, check, full
from tests.processes import in_thread


def test_arrays_are_aligned_and_read_only(open_channel):
    channel = open_channel(slots=8)
    kept = []
    for size in range(500, 4000, 97):  # from some on they are copies
        channel.put([full(size, size), np.arange(size + 0.5), {"x": np.ones(size, ">f8")}])
        first, second, inner = channel.take()[1]
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
    view = VIEWS[name](channel.exchange(7))
    for number in range(20):
        check(channel.exchange(number), number)
    assert channel.room() == 3
    assert set(np.array(view).tobytes()) == {7}
    del view
    gc.collect()
    assert channel.room() == 4


def test_what_is_kept_in_another_thread_stays(open_channel):
    channel = open_channel(slots=4)
    kept = {1: channel.exchange(1), 2: channel.exchange(2)}
    gone, go_on = threading.Event(), threading.Event()

    def run():
        check(kept.pop(1), 1)
        gone.set()
        go_on.wait(30)
        check(kept.pop(2), 2)

    thread, errors = in_thread(run)
    assert gone.wait(30)
    for number in range(50):
        check(channel.exchange(number), number)
    go_on.set()
    thread.join()
    assert errors == []
    assert channel.room() == 4


@pytest.mark.parametrize("look", ["take", "return_slots"])
def test_slots_go_back_at_the_next_look(open_channel, look):
    channel = open_channel(slots=3)
    kept = [channel.exchange(1), channel.exchange(2)]
    kept.clear()

    def room():
        return sum(channel.sender.offer(pack([full(0)])) for _ in range(4))

    assert room() == 1
    getattr(channel.receiver, look)()
    assert room() == 2


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
