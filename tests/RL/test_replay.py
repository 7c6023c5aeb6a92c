"""A replay memory hands out what it was given, whole, each transition equally often."""

import contextlib
import threading
import time

import numpy as np
import pytest
from hypothesis import strategies as st

from tensorpack.RL import ReplayMemory

# What becomes of a transition. After "both" nothing follows: the end counts, not the cut.
ENDS = {
    "goes on": (False, False),
    "over": (True, False),
    "cut": (False, True),
    "both": (True, True),
}


def frames_of(numbers, shape=(2,), dtype=np.uint8):
    """One frame for each number, filled with it: `[len(numbers), *shape]`."""
    return np.stack([np.full(shape, number, dtype) for number in numbers])


def append(memory, numbers, ends=None, lanes=None):
    """Appends a transition per number; the number is frame, action and reward, -1 - it the end."""
    terminated, truncated = np.array([ENDS[end] for end in ends or ["goes on"] * len(numbers)]).T
    memory.append(
        frames_of(numbers, dtype=np.int32),
        np.array(numbers),
        np.array(numbers, np.float32),
        terminated,
        truncated,
        lanes=lanes,
        final_frames=frames_of([-1 - number for number in numbers], dtype=np.int32),
    )


def make_memory(capacity, history, lanes=1):
    memory = ReplayMemory(capacity, (2,), history, lanes, frame_dtype=np.int32)
    memory._frames[:] = 12345  # memory that is not zeroed may hold anything
    return memory


def everything(memory, history):
    """All that can be sampled: action -> (numbers in the stack, terminated)."""
    if memory.num_sampleable == 0:
        return {}
    transitions = {}
    batch = memory.sample(60 * memory.num_sampleable, np.random.RandomState(0))
    assert batch.frames.shape == (len(batch.action), history + 1, 2)
    for stack, action, reward, terminated in zip(*batch):
        assert (stack[:, 0] == stack[:, 1]).all() and reward == action
        what = (stack[:, 0].tolist(), bool(terminated))
        assert transitions.setdefault(int(action), what) == what, (
            "depends on more than the transition"
        )
    return transitions


@contextlib.contextmanager
def writing(memory, size):
    """A thread that appends frames of 1, 2, 3, ... as fast as it can; yields it and the numbers."""
    stop, written, flags = threading.Event(), [], np.zeros(1, bool)

    def write():
        while not stop.is_set():
            number = len(written) + 1
            frame = frames_of([number], (size,), np.int32)
            memory.append(frame, [number], [number], flags, flags)
            written.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield writer, written
    finally:
        stop.set()
        writer.join()


@st.composite
def sizes(draw):
    """A history, the size of a lane, how many lanes, and what they may do in a tick."""
    history, lanes = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    move = st.sampled_from(["goes on"] * 4 + [None, "over", "cut", "both"])  # None: nothing
    moves = st.lists(move, min_size=lanes, max_size=lanes)
    return history, history + draw(st.integers(1, 8)), lanes, moves


def test_every_transition_is_drawn_equally_often():
    memory = make_memory(150, history=4, lanes=3)
    for number in range(1, 80):  # lane 0 wraps around, the others are filled in part
        lanes = [lane for lane in range(3) if number % (lane + 1) == 0]
        ends = ["over" if number % 7 == 0 else "goes on"] * len(lanes)
        append(memory, [number + 100 * lane for lane in lanes], ends, np.array(lanes))
    draws = 1000 * memory.num_sampleable
    actions = memory.sample(draws, np.random.RandomState(1)).action
    _, counts = np.unique(actions, return_counts=True)
    assert len(counts) == memory.num_sampleable
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(1000)
    # The sum of squares over the mean has a chi-squared distribution.
    chi_squared = ((counts - 1000.0) ** 2 / 1000).sum()
    assert abs(chi_squared - len(counts)) < 5 * np.sqrt(2 * len(counts))


def test_few_among_many_are_drawn_equally_often():
    memory = make_memory(8000, history=1, lanes=1000)
    append(memory, list(range(1000)), ["goes on"] * 998 + ["over", "over"])
    actions = memory.sample(10000, np.random.RandomState(0)).action
    assert set(actions.tolist()) == {998, 999}
    assert abs(np.count_nonzero(actions == 998) - 5000) < 5 * np.sqrt(2500)


def test_a_batch_is_new_typed_and_never_written_again():
    memory = ReplayMemory(30, (4, 3), history=2)
    for number in range(1, 20):
        given_frames = frames_of([number], (4, 3))
        memory.append(given_frames, [number], [0.5], np.zeros(1, bool), np.zeros(1, bool))
        given_frames[:] = 0  # it was copied
    batch = memory.sample(8, np.random.RandomState(0))
    assert batch.frames.shape == (8, 3, 4, 3) and batch.frames.flags.c_contiguous
    assert [array.dtype.name for array in batch] == ["uint8", "int64", "float32", "bool"]
    assert (batch.frames[:, 1, 0, 0] == batch.action).all() and (batch.reward == 0.5).all()
    assert all(array.flags.writeable for array in batch)
    before = [array.copy() for array in batch]
    for _ in range(60):
        memory.append(frames_of([200], (4, 3)), [0], [0], np.ones(1, bool), np.zeros(1, bool))
    memory.sample(8, np.random.RandomState(0))
    assert all(np.array_equal(one, other) for one, other in zip(batch, before))


def test_the_memory_it_takes_is_known_beforehand():
    size = ReplayMemory.required_bytes(1001.0, (84, 84), history=4, lanes=8)
    columns = ReplayMemory(1001, (84, 84), history=4, lanes=8)._columns.values()
    assert size == sum(column.nbytes for column in columns)
    assert size - 1008 * 84 * 84 == 1008 * 14  # the capacity, rounded up; 14 for the rest
    floats = ReplayMemory.required_bytes(1000, (3,), frame_dtype=np.float32)
    assert floats == 1000 * (12 + 14)


def test_a_stack_never_mixes_what_was_there_with_what_replaced_it():
    """A writer goes round a small ring as fast as it can, while batches are sampled from it."""
    memory = ReplayMemory(24, (2048,), history=4, frame_dtype=np.int32)
    with writing(memory, 2048) as (writer, written):
        while len(written) < 48:  # the beginning, with its zeros, has been overwritten
            time.sleep(0.001)
            assert writer.is_alive()
        rng, sampled = np.random.RandomState(0), 0
        while sampled < 400 or (len(written) < 400 and writer.is_alive()):
            frames, action, reward, terminated = memory.sample(16, rng)
            assert (frames == frames[:, :, :1]).all(), "a frame of two ages"
            assert (frames[:, :, 0] == action[:, None] + np.arange(-3, 2)).all()
            assert (reward == action).all() and not terminated.any()
            sampled += 1
    assert len(written) >= 400


def test_a_memory_without_a_whole_transition_cannot_be_sampled():
    memory = make_memory(20, history=2)
    append(memory, [1])
    with pytest.raises(RuntimeError, match="holds 1 entries and no whole transition: append more"):
        memory.sample(1, np.random.RandomState(0))


def test_each_lane_has_room_for_a_transition():
    with pytest.raises(ValueError, match="capacity must be .* at least 10, but got 9"):
        ReplayMemory(9, (2,), 4, 2)


GOOD = {
    "frames": np.zeros((2, 2), np.uint8),
    "actions": np.zeros(2, int),
    "rewards": np.zeros(2),
    "terminated": np.zeros(2, bool),
    "truncated": np.zeros(2, bool),
}


@pytest.mark.parametrize(
    "change, message",
    [
        ({"frames": np.full((2, 2), 300)}, r"frames must be uint8 \[2, 2\], got int64 \[2, 2\]"),
        ({"rewards": np.array([0, np.nan])}, "reward of environment 1 is NaN"),
        ({"truncated": np.ones(2, bool)}, "give its last frame as final_frames"),
        ({"lanes": np.array([1, 1])}, "lanes are different numbers below 2, got"),
    ],
)
def test_wrong_arguments_are_refused_and_change_nothing(change, message):
    memory = ReplayMemory(20, (2,), history=2, lanes=2)
    with pytest.raises(ValueError, match=message):
        memory.append(**{**GOOD, **change})
    assert len(memory) == memory.num_sampleable == 0
    memory.append(**GOOD)
    assert len(memory) == 2


def test_numbers_of_other_types_are_taken_where_nothing_is_lost():
    memory = ReplayMemory(20, (2,), history=2, lanes=2)
    memory.append(np.full((2, 2), 7.0), [1.0, 2.0], [True, 0], [0, 0], [0, 0.0])
    memory.append(*GOOD.values())
    assert sorted(memory.sample(50, np.random.RandomState(0)).action.tolist())[::49] == [1, 2]
