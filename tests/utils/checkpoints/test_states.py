"""States and their segments through saves and restores, without TensorFlow."""

import os
from functools import partial

import numpy as np
import pytest

from tensorpack.utils.checkpoints import (
    SEGMENTS,
    STATE,
    CheckpointCorrupt,
    CheckpointStore,
    Segments,
    UnsupportedState,
    find_restore_point,
    read_restore_point,
    store,
)


def write_variables(values, prefix):
    """Writes files such as those of TensorFlow."""
    for suffix in (".data-00000-of-00001", ".index"):
        with open(prefix + suffix, "w") as file:
            file.write(str(values))


class Journal:
    """An owner of segments, one for each save, of which a state needs the last `reach`."""

    def __init__(self, reach=2):
        self._reach = reach
        self.refs = []
        self.told = []

    def state(self, step):
        arrays = {"numbers": np.full(100, step, np.int64)}
        saved = self.refs[1 - self._reach :] if self._reach > 1 else []
        return Segments(saved, [({"step": step}, arrays)], self._on_done)

    def _on_done(self, refs):
        self.told.append(refs)
        if refs is not None:
            self.refs = refs


class Run:
    """Saves states with a journal into a directory."""

    def __init__(self, directory, **options):
        self.directory = str(directory)
        self.journal = Journal(**options)
        self.store = CheckpointStore(self.directory, max_to_keep=3)

    def save(self, *steps, write=None):
        for step in steps:
            state = {"step": step, "journal": self.journal.state(step)}
            self.store.save(step, write or partial(write_variables, {"v": step}), state)
        return self

    def path(self, name):
        return os.path.join(self.directory, name)

    def segments(self):
        return sorted(os.listdir(self.path(SEGMENTS)))


def steps_of(saved):
    """Steps of the segments that a state needs, as they are read from the disk."""
    journal = saved.state["journal"]
    return [int(journal.read(ref)["numbers"][0]) for ref in journal.refs]


def flip(path):
    with open(path, "r+b") as file:
        data = bytearray(file.read())
        data[-1] ^= 1
        file.seek(0)
        file.write(data)


def test_variables_and_state_are_one(tmp_path):
    run = Run(tmp_path).save(4)
    saved = find_restore_point(run.directory)
    assert (saved.prefix, saved.problem) == (run.path("model-4"), None)
    assert saved.state["step"] == 4 and steps_of(saved) == [4]
    assert (tmp_path / "model-4.index").read_text() == "{'v': 4}"


def test_segments_are_kept_for_the_newest_two_states(tmp_path):
    run = Run(tmp_path, reach=2).save(1, 2, 3, 4, 5)
    # State 5 needs 4 and 5, state 4 needs 3 and 4.
    assert run.segments() == [f"segment-{n:08d}.seg" for n in (3, 4, 5)]
    assert steps_of(find_restore_point(run.directory)) == [4, 5]
    assert steps_of(read_restore_point(run.path("model-4"))) == [3, 4]
    assert "segment-00000002.seg" in read_restore_point(run.path("model-3")).problem


def test_a_continued_run_keeps_those_of_the_state_before(tmp_path):
    Run(tmp_path).save(1, 2)
    again = Run(tmp_path)
    again.journal.refs = find_restore_point(str(tmp_path)).state["journal"].refs
    again.save(3)
    assert steps_of(read_restore_point(again.path("model-2"))) == [1, 2]
    assert steps_of(read_restore_point(again.path("model-3"))) == [2, 3]


@pytest.mark.parametrize("error", [OSError("no space"), LookupError("broken"), KeyboardInterrupt()])
def test_a_failed_save_changes_nothing_and_tells_the_owner(tmp_path, error):
    run = Run(tmp_path).save(1, 2)

    def fails(path):
        write_variables({"v": 3}, path)
        os.mkdir(path + "_temp_of_tensorflow")
        raise error

    before = sorted(os.listdir(run.directory)), run.segments()
    with pytest.raises(type(error)):
        run.save(3, write=fails)
    assert (sorted(os.listdir(run.directory)), run.segments()) == before
    assert run.journal.told[-1] is None
    assert steps_of(find_restore_point(run.directory)) == [1, 2]
    run.save(4)
    assert steps_of(find_restore_point(run.directory)) == [2, 4]


def test_a_value_that_cannot_be_kept_is_named(tmp_path):
    store = CheckpointStore(str(tmp_path))
    state = {"callbacks": {"Mine": {"thing": object()}}}
    with pytest.raises(TypeError, match=r"\['run'\]\['callbacks'\]\['Mine'\]\['thing'\]: a object"):
        store.save(1, partial(write_variables, {"v": 1}), state)
    assert find_restore_point(str(tmp_path)) is None


@pytest.mark.parametrize("name", ["model-2" + STATE, f"{SEGMENTS}/segment-00000002.seg"])
def test_damage_of_the_newest_is_passed_over(tmp_path, name, capsys):
    run = Run(tmp_path).save(1, 2)
    flip(run.path(name))
    assert find_restore_point(run.directory).prefix == run.path("model-1")
    assert name in capsys.readouterr().out


def test_damage_of_a_segment_of_all_leaves_the_newest_with_what_it_has(tmp_path, capsys):
    run = Run(tmp_path).save(1, 2)
    os.remove(run.path(f"{SEGMENTS}/segment-00000001.seg"))
    saved = find_restore_point(run.directory)
    assert saved.prefix == run.path("model-2")
    assert "segment-00000001.seg" in saved.problem
    assert "No state in" in capsys.readouterr().out


def test_a_state_of_another_version_is_refused_with_the_next_move(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(store, "FORMAT", 3)
        prefix = CheckpointStore(str(tmp_path)).save(1, partial(write_variables, {}), {})
    says = rf"model-1.state has format 3, this version .*InitFrom\('{prefix}'\)"
    for find in (lambda: find_restore_point(str(tmp_path)), lambda: read_restore_point(prefix)):
        with pytest.raises(UnsupportedState, match=says):
            find()
    CheckpointStore(str(tmp_path)).save(2, partial(write_variables, {}), {})


@pytest.mark.parametrize("tree", [{"a": (1, 2.5, None)}, {"$a": [np.arange(3), {"@a": 2}]}])
def test_every_damage_of_a_state_is_noticed(tmp_path, tree):
    CheckpointStore(str(tmp_path)).save(1, lambda prefix: write_variables({}, prefix), tree)
    path = tmp_path / ("model-1" + STATE)
    data = path.read_bytes()
    for place in range(len(data)):
        for damaged in (data[:place], data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]):
            path.write_bytes(damaged)
            with pytest.raises(CheckpointCorrupt):
                read_restore_point(str(tmp_path / "model-1"))
    path.write_bytes(data)
    assert repr(read_restore_point(str(tmp_path / "model-1")).state) == repr(tree)


def test_segments_of_another_directory_are_not_referred_to(tmp_path):
    old = Run(tmp_path / "old").save(1, 2)
    here = find_restore_point(old.directory, old.directory).state["journal"]
    assert here.reusable
    assert not find_restore_point(old.directory, str(tmp_path / "new")).state["journal"].reusable
    new = Run(tmp_path / "new")
    new.journal.refs = here.refs  # as an owner would have it that does not look at `reusable`
    with pytest.raises(FileNotFoundError, match="A segment that the state needs was deleted"):
        new.save(3)
    assert find_restore_point(new.directory) is None


def test_the_damaged_state_behind_the_one_resumed_keeps_no_segments(tmp_path):
    run = Run(tmp_path, reach=1).save(4, 5, 6)
    flip(run.path("model-6.data-00000-of-00001"))
    again = Run(tmp_path, reach=1)
    again.store.resume_from(again.path("model-5"))
    again.save(7)
    assert steps_of(read_restore_point(again.path("model-5"))) == [5]
    assert steps_of(read_restore_point(again.path("model-7"))) == [7]
    assert len(again.segments()) == 2


def test_a_state_that_a_checkpoint_does_not_know_is_not_its(tmp_path):
    run = Run(tmp_path).save(1)
    kept = (tmp_path / ("model-1" + STATE)).read_bytes()
    other = CheckpointStore(run.directory)
    other.save(1, lambda path: write_variables({"v": 7}, path))
    (tmp_path / ("model-1" + STATE)).write_bytes(kept)
    assert "holds variables only" in read_restore_point(run.path("model-1")).problem
    assert read_restore_point(run.path("model-1")).state is None
