"""The directory of a run is renamed or removed, or its lock is; and pointers of other programs."""

import os
from functools import partial

import pytest

from tensorpack.utils._directory_lock import DirectoryLock
from tensorpack.utils.checkpoints import (
    CheckpointStore,
    DirectoryReplaced,
    find_restore_point,
    pointed_to,
)
from tests.utils.checkpoints.test_states import write_variables

write = partial(write_variables, "values")


@pytest.fixture
def log(tmp_path):
    """A log directory with two whole checkpoints."""
    store = CheckpointStore(str(tmp_path / "log"))
    for step in (1, 2):
        store.save(step, write, {"step": step})
    return tmp_path / "log"


def test_the_pointer_of_another_program(log):
    os.rename(str(log), str(log.parent / "\xe4 log"))
    text = 'model_checkpoint_path: "m\\303\\244-1"\n  all_model_checkpoint_paths:"b"\n'
    (log.parent / "\xe4 log" / "checkpoint").write_text(text)
    found = pointed_to(str(log.parent / "\xe4 log"))
    assert [os.path.basename(path) for path in found] == ["b", "m\xe4-1"]


@pytest.mark.fault_row(55)
def test_a_directory_or_a_lock_that_was_removed_is_made_again_and_locked(log):
    with DirectoryLock(str(log)):
        store = CheckpointStore(str(log))
        removals = [lambda: log.rename(log.parent / "renamed"), (log / ".lock").unlink]
        for step, remove in enumerate(removals):
            remove()
            store.save(step, write, {"step": step})
            assert find_restore_point(str(log)).state == {"step": step}
            with pytest.raises(OSError, match="used by another run"):
                DirectoryLock(str(log))


def names(directory):
    return sorted(os.listdir(str(directory)))


@pytest.mark.fault_row(55)
@pytest.mark.parametrize("renamed", [True, False])
@pytest.mark.parametrize("alive", [True, False])
def test_a_run_does_not_save_where_another_has_taken_its_place(log, alive, renamed):
    with DirectoryLock(str(log)):
        store = CheckpointStore(str(log))
        if renamed:
            log.rename(log.parent / "renamed")
            log.mkdir()
        else:
            (log / ".lock").unlink()
        other = DirectoryLock(str(log))
        if not alive:
            other.release()
        before = names(log)
        for _ in range(2):
            with pytest.raises(DirectoryReplaced, match="/.lock is not the one .* another run"):
                store.save(3, write, {"step": 3})
        assert names(log) == before
        other.release()
