"""A replay memory that is saved bit by bit comes back whole, and keeps no more than it must."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.RL import ReplayMemory
from tensorpack.utils.checkpoints import SegmentDamaged
from tests.RL.disk import Disk, assert_same, through_a_checkpoint
from tests.RL.test_replay import append, make_memory, sizes, writing
from tests.tiers import first_fast


def fill(memory, count, start=1, ends=("goes on",)):
    """So many ticks of all lanes, with these ends in turn."""
    lanes = memory._rings.lanes
    for tick in range(start, start + count):
        numbers = [tick + 1000 * lane for lane in range(lanes)]
        append(memory, numbers, [ends[tick % len(ends)]] * lanes)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(sizes(), st.sampled_from([None, 1, 2, 5, 100]), st.data())
def test_a_restored_memory_continues_like_the_one_that_was_saved(life, piece, data):
    history, size, lanes, moves = life
    ticks = st.tuples(st.integers(1, 9), moves)
    others = st.sampled_from(["save", "save", "fail", "end"])
    events = data.draw(st.lists(st.one_of(ticks, ticks, others), max_size=40))

    def make():
        options = {"frame_dtype": np.int32, "segment_entries": piece}
        return ReplayMemory(size * lanes, (2,), history, lanes, **options)

    memory, number, disk = make(), 0, Disk()
    restored, its_disk = make(), disk
    for event in events:
        if event == "save":
            state = disk.save(memory)
            restored = make()
            restored.load_state_dict(state)
            assert_same(memory, restored)
        elif event == "fail":
            disk.save(memory, fails=True)
            its_disk.save(restored, fails=True)
        elif event == "end":
            memory.end_episodes()
            restored.end_episodes()
        else:
            moving = [lane for lane in range(lanes) if event[1][lane] is not None]
            for _ in range(event[0] if moving else 0):
                numbers = list(range(number + 1, number + 1 + len(moving)))
                number = numbers[-1]
                for one in (memory, restored):
                    append(one, numbers, [event[1][lane] for lane in moving], np.array(moving))
        assert_same(memory, restored)
        if memory.num_sampleable:
            for one, other in zip(
                *(m.sample(9, np.random.RandomState(3)) for m in (memory, restored))
            ):
                np.testing.assert_array_equal(one, other)
    # What either of them saves now holds the same, though they know of other segments.
    for one in (memory, restored):
        fresh = make()
        fresh.load_state_dict(disk.save(one))
        assert_same(memory, fresh)


def test_a_save_writes_what_came_since_the_one_before():
    memory, disk = make_memory(40, history=2, lanes=2), Disk()
    fill(memory, 5)
    disk.save(memory)
    fill(memory, 3, start=6)
    disk.save(memory)
    assert sum(ref.meta["count"] for ref in disk.written) == 2 * 3
    state = disk.save(memory)
    assert disk.written == [] and disk.last == disk.before
    restored = make_memory(40, history=2, lanes=2)
    restored.load_state_dict(state)
    fill(restored, 1, start=9)
    disk.save(restored)
    assert [ref.meta for ref in disk.written] == [
        {"lane": 0, "first": 8, "count": 1},
        {"lane": 1, "first": 8, "count": 1},
    ]


@pytest.mark.parametrize("piece", [None, 7, 10**6])
@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("ticks", first_fast([1, 5, 16, 40, 41, 97, 130], 3))
def test_two_states_keep_no_more_than_the_capacity_and_two_saves(ticks, lanes, piece):
    memory = ReplayMemory(40 * lanes, (2,), 2, lanes, np.int32, segment_entries=piece)
    disk = Disk()
    for save in range(600 // ticks):
        fill(memory, ticks, start=save * ticks)
        disk.save(memory)
        assert disk.num_entries() <= lanes * (40 + 2 * ticks)
        if piece is None:
            assert disk.num_entries() <= lanes * (40 + ticks + 40 / 16)


@pytest.fixture
def appending():
    """Appends in a thread; returns an event that tells it is done."""
    threads = []

    def start(*args, **kwargs):
        done = threading.Event()
        threads.append(threading.Thread(target=lambda: (append(*args, **kwargs), done.set())))
        threads[-1].start()
        return done

    yield start
    for thread in threads:
        thread.join(10)


def test_append_waits_where_it_would_overwrite_what_is_being_saved(appending):
    memory, disk = make_memory(20, history=2, lanes=2), Disk()
    fill(memory, 12)
    disk.save(memory)
    fill(memory, 3, start=13)  # entries 12 to 14 are new, in slots 2 to 4
    state = memory.state_dict()
    before = [{n: a.copy() for n, a in arrays.items()} for _, arrays in state["entries"].new]
    fill(memory, 7, start=16)  # slots 5 to 9 and 0 to 1: those in them were saved before
    done = appending(memory, [99], lanes=np.array([1]))
    assert not done.wait(0.2)
    memory.sample(5, np.random.RandomState(0))  # which never waits
    for (_, arrays), copies in zip(state["entries"].new, before):
        for name in arrays:
            np.testing.assert_array_equal(arrays[name], copies[name])
    disk.finish(state)
    assert done.wait(10)
    assert memory._rings.written.tolist() == [22, 23]


def test_a_final_frame_waits_too(appending):
    memory = make_memory(10, history=2)
    fill(memory, 9)
    disk, state = Disk(), memory.state_dict()
    done = appending(memory, [10], ["cut"])  # two entries
    assert not done.wait(0.2) and memory._rings.written[0] == 9
    disk.finish(state)
    assert done.wait(10) and memory._rings.written[0] == 11


def test_a_save_while_another_one_is_under_way_is_refused():
    memory = make_memory(10, history=2)
    fill(memory, 3)
    state = memory.state_dict()
    with pytest.raises(RuntimeError, match="still being saved"):
        memory.state_dict()
    with pytest.raises(RuntimeError, match="while it is being saved"):
        memory.load_state_dict(Disk().finish(make_memory(10, history=2).state_dict()))
    Disk().finish(state)
    Disk().save(memory)


def test_a_memory_of_other_sizes_is_refused():
    memory, other = make_memory(40, history=2, lanes=2), make_memory(20, history=2, lanes=4)
    fill(memory, 3)
    with pytest.raises(ValueError, match="has capacity=40, lanes=2, this one has capacity=20, lan"):
        other.load_state_dict(Disk().save(memory))
    assert len(other) == 0


def test_a_save_that_is_read_while_another_thread_appends_is_of_one_moment():
    memory, disk = ReplayMemory(64, (256,), 4, frame_dtype=np.int32), Disk()
    with writing(memory, 256):
        for _ in range(60):
            restored = ReplayMemory(64, (256,), 4, frame_dtype=np.int32)
            state = disk.save(memory)
            restored.load_state_dict(state)
            written = int(state["written"][0])
            held = np.arange(max(0, written - 64), written)
            frames = restored._columns["frame"][held % 64]
            assert (frames == held[:, None] + 1).all()


def test_it_comes_back_from_real_files(tmp_path):
    memory = make_memory(24, history=2, lanes=2)
    for save in range(9):
        fill(memory, 5, start=5 * save + 1, ends=("goes on", "cut", "goes on", "over"))
        state = through_a_checkpoint(memory.state_dict(), tmp_path)
    restored = make_memory(24, history=2, lanes=2)
    restored.load_state_dict(state)
    assert_same(memory, restored)
    fill(restored, 1)
    assert sum(meta["count"] for meta, _ in restored.state_dict()["entries"].new) == 2
    path = tmp_path / "segments" / state["entries"].refs[-1].name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SegmentDamaged):
        memory.load_state_dict(state)
    assert len(memory) == 0
    fill(memory, 3)
    fresh = make_memory(24, history=2, lanes=2)
    fresh.load_state_dict(Disk().save(memory))
    assert_same(memory, fresh)
