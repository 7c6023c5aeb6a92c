"""The state that is acted upon holds the last frames of the episode, and is what is learnt from."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.RL import FrameHistory, ReplayMemory, epsilon_greedy

NONE = np.zeros(2, bool)


def frames(*values):
    return np.array(values, np.uint8)[:, None, None] + np.zeros((2, 3), np.uint8)


def test_what_is_acted_upon_is_what_is_sampled():
    """Two environments; an episode ends by a game's end, by a lost life, or is cut off."""
    rng = np.random.RandomState(0)
    history, memory = FrameHistory(2, (2, 3), 4), ReplayMemory(600, (2, 3), 4, lanes=2)
    starts, acted_upon = np.ones(2, bool), {}
    for tick in range(200):
        now = rng.randint(1, 256, size=(2, 2, 3)).astype(np.uint8)
        states = history.observe(now, starts)
        actions = np.array([tick, 1000 + tick])  # each once, so that it names the transition
        acted_upon.update(zip(actions.tolist(), states))
        over, cut = rng.rand(2) < 0.1, rng.rand(2) < 0.1
        memory.append(now, actions, np.zeros(2), over, cut, final_frames=255 - now)
        starts = over | cut
    batch = memory.sample(5000, rng)
    assert len(set(batch.action.tolist())) == memory.num_sampleable >= 398
    for action, stack in zip(batch.action.tolist(), batch.frames):
        assert np.array_equal(np.moveaxis(stack[:4], 0, -1), acted_upon[action])


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from(["", "ask", "save"]))),
)
def test_when_it_is_asked_makes_no_difference(length, ticks):
    lazy = FrameHistory(2, (2, 3), length)
    expected = np.zeros((2, 2, 3, length), np.uint8)
    for number, (*starts, what) in enumerate(ticks, 1):
        one = frames(number % 256, (number + 100) % 256)
        lazy.push(one, np.array(starts))
        expected[np.array(starts)] = 0
        expected = np.concatenate([expected[..., 1:], one[..., None]], axis=-1)
        if what == "ask":
            assert np.array_equal(lazy.states(), expected)
        elif what == "save":
            assert np.array_equal(lazy.state_dict()["states"], expected)
    assert np.array_equal(lazy.states(), expected)
    assert np.array_equal(lazy.states(np.array([False, True])), expected[1:])
    assert lazy.states().dtype == np.uint8


def test_what_is_pushed_is_copied_and_states_of_some_are_new():
    memory = FrameHistory(2, (2, 3), history=2)
    memory.push(frames(9, 9), NONE)
    given_frames, starts = frames(1, 2), np.array([True, False])
    memory.push(given_frames, starts)
    given_frames[:] = 99
    starts[:] = True
    some = memory.states(np.array([1]))
    assert some[0, 0, 0].tolist() == [9, 2]
    some[:] = 77
    memory.push(frames(3, 4), NONE)
    assert memory.states()[:, 0, 0].tolist() == [[1, 3], [2, 4]]


def test_frames_of_another_type_are_refused():
    with pytest.raises(ValueError, match="frames must be uint8.*got float64"):
        FrameHistory(2, (2, 3)).observe(frames(1, 2).astype(float), NONE)


def test_a_restored_history_continues_like_the_one_that_was_saved():
    memory, other = FrameHistory(2, (2, 3), history=3), FrameHistory(2, (2, 3), history=3)
    memory.observe(frames(1, 2), NONE)
    memory.observe(frames(3, 4), NONE)
    state = memory.state_dict()
    state["states"].flags.writeable = False  # as it comes from a file
    expected = [memory.observe(frames(k, k + 1), np.array([k == 6, False])) for k in (5, 6)]
    other.load_state_dict(state)
    memory.load_state_dict(state)
    for one in (memory, other):
        states = [one.observe(frames(k, k + 1), np.array([k == 6, False])) for k in (5, 6)]
        assert np.array_equal(states, expected)
    assert state["states"][0, 0, 0].tolist() == [0, 1, 3]


@pytest.mark.parametrize("sizes", [(3, (2, 3)), (2, (2, 3), 4, np.float32)], ids=str)
def test_a_history_of_other_sizes_is_refused(sizes):
    other = FrameHistory(*sizes)
    with pytest.raises(ValueError, match=r"is uint8 \[2, 2, 3, 4\], this one is"):
        other.load_state_dict(FrameHistory(2, (2, 3)).state_dict())


def rng(seed=0):
    return np.random.RandomState(seed)


def test_without_chance_the_best_action_is_taken_and_the_first_of_equal_ones():
    q_values = np.array([[0, 2, 1], [-1, -2, -3], [5, 7, 7]], np.float32)
    actions = epsilon_greedy(q_values, 0, rng())
    assert actions.tolist() == [1, 0, 1]
    assert actions.dtype == np.int64


def test_epsilon_is_the_part_of_the_rows_that_is_left_to_chance():
    q_values = np.tile(np.array([0.0, 1.0]), (40000, 1))
    stream, other = rng(), rng()
    best = np.count_nonzero(epsilon_greedy(q_values, 0.3, stream))
    epsilon_greedy(0 * q_values, 0, other)  # draws as many numbers
    assert stream.randint(2**31 - 1) == other.randint(2**31 - 1)
    assert abs(best - 40000 * 0.85) < 5 * np.sqrt(40000 * 0.85 * 0.15)
