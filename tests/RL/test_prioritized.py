"""Prioritised replay: what is drawn how often, its weights, late priorities, the saved state."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.RL import PrioritizedReplay, ReplayMemory
from tests.RL.disk import Disk, assert_same
from tests.RL.test_replay import append, sizes


def make_memory(capacity, history=2, lanes=1, **options):
    return PrioritizedReplay(capacity, (2,), history, lanes, np.int32, **options)


def fill(memory, numbers, end="goes on"):
    for number in numbers:
        append(memory, [number], [end])


def priorities_of(memory):
    """p^alpha of each action that can be sampled."""
    slots = np.flatnonzero(memory._tree[:])
    return dict(zip(memory._action[slots].tolist(), memory._tree[slots].tolist()))


def give(memory, priorities):
    """Sets the priorities of actions, by what a batch says of them."""
    drawn = memory.sample_weighted(3000, np.random.RandomState(0))
    slots = dict(zip(drawn.batch.action.tolist(), drawn.slot.tolist()))
    memory.update_priorities([slots[action] for action in priorities], list(priorities.values()))


def test_transitions_are_drawn_in_proportion_to_the_power_of_their_priorities():
    memory = make_memory(100, alpha=0.5, beta=0.4)
    fill(memory, range(1, 6))
    give(memory, {1: 1.0, 2: 4.0, 3: 9.0, 4: 0.0})
    expected = {1: 1.0, 2: 2.0, 3: 3.0, 4: 1e-3}
    assert priorities_of(memory) == pytest.approx(expected, rel=1e-5)
    drawn = memory.sample_weighted(60010, np.random.RandomState(1))
    counts = np.bincount(drawn.batch.action, minlength=5)[1:]
    np.testing.assert_allclose(counts, 60010 * np.array([1, 2, 3, 1e-3]) / 6.001, atol=3)
    # w = (N P(i))^-beta, over the largest of the batch: that of the rarest
    weights = {action: (1e-3 / power) ** 0.4 for action, power in expected.items()}
    assert drawn.weight.dtype == np.float32
    for action, weight in zip(drawn.batch.action.tolist(), drawn.weight.tolist()):
        assert weight == pytest.approx(weights[action], rel=1e-4)
    assert memory.sample(9, np.random.RandomState(0), steps=3).reward.shape == (9, 3)


def test_a_new_transition_has_the_largest_priority_so_far():
    memory = make_memory(100, alpha=1.0)
    fill(memory, [1, 2])
    assert priorities_of(memory) == {1: 1.0}
    give(memory, {1: 5.0})
    fill(memory, [3])
    assert priorities_of(memory) == pytest.approx({1: 5.0, 2: 5.0})
    give(memory, {1: 0.5, 2: 0.25})
    fill(memory, [4], "over")
    assert priorities_of(memory) == pytest.approx({1: 0.5, 2: 0.25, 3: 5.0, 4: 5.0}, rel=1e-5)


def test_a_late_priority_of_what_was_overwritten_is_skipped():
    memory = make_memory(6, history=2, lanes=2)  # three entries in each lane
    for number in (1, 2, 3):
        append(memory, [number, 10 * number])
    old = memory.sample_weighted(50, np.random.RandomState(0))
    assert set(old.batch.action) == {1, 2, 10, 20}
    append(memory, [4], lanes=np.array([0]))  # replaces 1, whose frame the state of 2 needs
    before = priorities_of(memory)
    assert set(before) == {3, 10, 20}
    append(memory, [5], lanes=np.array([0]))
    append(memory, [6], lanes=np.array([0]))  # one is in every slot where another was
    memory.update_priorities(old.slot, old.batch.action * 100.0)
    after = priorities_of(memory)
    assert set(after) == {5, 10, 20} and after[5] == 1.0
    assert after[10] == pytest.approx(1000**0.5) and after[20] == pytest.approx(2000**0.5)
    give(memory, {5: 9.0})  # it has a name of its own, where 2 was
    assert priorities_of(memory)[5] == pytest.approx(3.0)


@settings(max_examples=80, deadline=None)
@given(sizes(), st.integers(1, 3), st.data())
def test_it_is_like_a_dictionary_and_resumes_to_the_bit(life, steps, data):
    history, size, lanes, moves = life
    events = data.draw(st.lists(st.one_of(moves, moves, st.sampled_from(["learn", "save", "end"]))))

    def make():
        return make_memory(size * lanes, history, lanes, alpha=0.7)

    uniform = ReplayMemory(size * lanes, (2,), history, lanes, np.int32)
    memory, disk, number, known, late = make(), Disk(), 0, {}, []
    rng = np.random.RandomState(0)
    for event in events:
        if event == "save":
            restored = make()
            restored.load_state_dict(disk.save(memory))
            assert_same(memory, restored)
            np.testing.assert_array_equal(memory._tree[:], restored._tree[:])
            assert (memory._largest, memory._tree.total) == (
                restored._largest,
                restored._tree.total,
            )
            memory = restored
        elif event == "end":
            memory.end_episodes()
            uniform.end_episodes()
        elif event == "learn" and memory.num_sampleable:
            late.append(memory.sample_weighted(5, rng, steps))
            old = late.pop(0) if len(late) > 2 else late[-1]
            priorities = rng.rand(5).astype(np.float32) * 3
            memory.update_priorities(old.slot, priorities)
            known.update(zip(old.batch.action.tolist(), priorities.tolist()))
        elif isinstance(event, list):
            moving = [lane for lane in range(lanes) if event[lane] is not None]
            if moving:
                numbers = list(range(number + 1, number + 1 + len(moving)))
                number = numbers[-1]
                for one in (memory, uniform):
                    append(one, numbers, [event[lane] for lane in moving], np.array(moving))
        assert memory.num_sampleable == uniform.num_sampleable
        held = priorities_of(memory)
        assert set(held) == set(uniform._action[uniform._sampleable].tolist())
        assert memory._tree.total == pytest.approx(sum(held.values()), rel=1e-12, abs=0)
        for action, power in held.items():
            if action in known:
                assert power == pytest.approx((known[action] + 1e-6) ** 0.7, rel=1e-5)


def test_a_state_of_a_uniform_memory_is_taken_and_the_other_way_round():
    uniform, memory, disk = ReplayMemory(20, (2,), 2, 1, np.int32), make_memory(20), Disk()
    fill(uniform, [1, 2, 3])
    memory.load_state_dict(disk.save(uniform))
    assert priorities_of(memory) == {1: 1.0, 2: 1.0}
    uniform.load_state_dict(disk.save(memory))
    assert uniform.num_sampleable == 2


def test_wrong_priorities_are_refused_and_change_nothing():
    memory = make_memory(20)
    fill(memory, [1, 2, 3])
    with pytest.raises(ValueError, match="finite and not negative.*the loss may have diverged"):
        give(memory, {1: 3.0, 2: np.nan})
    assert priorities_of(memory) == {1: 1.0, 2: 1.0}
    with pytest.raises(ValueError, match="never had all of the entries"):
        memory.update_priorities(np.array([99]), np.array([1.0]))
