"""Rows 52, 54 and 55 of the matrix: unusual paths, a working directory that changes, the lock."""

import json
import os

import pytest

from tensorpack.utils.checkpoints import get_all_checkpoints

from .run_case import Case

DONE = ("Training has finished!",)
IN_USE = r"tensorpack\.utils\._directory_lock\.DirectoryInUse: .* used by another run"
DELETED = r".*DirectoryReplaced: .*/log/\.lock is not the one that this run"


def steps(log):
    return [step for _, step in get_all_checkpoints(str(log))]


@pytest.mark.slow
@pytest.mark.fault_row(52)
def test_a_run_in_a_directory_that_is_a_pattern_is_saved_and_resumed(run, tmp_path):
    directory = tmp_path / "layers=[64,64]\\a*?"
    directory.mkdir()
    run(Case(52, "finishes", 0, says=DONE, never=("Cannot save",)), directory)
    assert steps(directory / "log") == [20, 40, 60]
    says = (*DONE, "Restoring checkpoint from", "model-60", "Start Epoch 4")
    run(Case(52, "resumes", 0, says=says, never=("Cannot save",)), directory, action="keep")
    assert steps(directory / "log") == [20, 40, 60, 80, 100, 120]


@pytest.mark.fault_row(52)
def test_a_directory_that_is_not_utf8_is_refused_before_anything_is_built(run, tmp_path):
    directory = tmp_path / os.fsdecode(b"caf\xe9")
    directory.mkdir()
    error = r"ValueError: The path b'.*caf\\xe9/log' is not UTF-8"
    run(Case(52, "finishes", 1, error=error, never=("PHASE", "Epoch")), directory)
    assert os.listdir(str(directory)) == []


@pytest.mark.slow
@pytest.mark.fault_row(54)
def test_all_files_go_where_they_went_before_the_working_directory_changed(run, tmp_path):
    run(Case(54, "working_directory_changes", 0, says=DONE))
    log = tmp_path / "log"
    assert os.listdir(str(tmp_path / "elsewhere")) == ["deeper"]
    assert not (tmp_path / "train_log").exists()
    assert os.listdir(str(tmp_path / "elsewhere" / "deeper")) == []
    assert steps(log) == [20, 40, 60]
    epochs = json.loads((log / "stats.json").read_text())
    assert [epoch["epoch_num"] for epoch in epochs] == [1, 2, 3]
    assert "finished" in (log / "run.json").read_text()
    assert "Training has finished!" in (log / "log.log").read_text()
    assert len(list(log.glob("events.out.tfevents.*"))) == 1


@pytest.mark.slow
@pytest.mark.fault_row(55)
def test_a_deleted_lock_is_made_again_by_the_next_save(start, run, tmp_path):
    says = (*DONE, ".lock was removed during the run; it is made again")
    with start(Case(55, "lock_is_deleted", 0, says=says)) as first:
        first.child.wait_for("PHASE waits")
        run(Case(55, "finishes", 1, error=IN_USE, never=("PHASE",)), action="keep")
        (tmp_path / "go").touch()
        first.end()
    assert steps(tmp_path / "log") == [20, 40, 60]


@pytest.mark.slow
@pytest.mark.fault_row(55)
def test_a_run_ends_if_another_came_when_its_lock_was_deleted(start, run, tmp_path):
    with start(Case(55, "lock_is_deleted_before_a_save", 1, error=DELETED)) as first:
        first.child.wait_for("PHASE waits")
        run(Case(55, "resumes", 0, says=DONE), action="keep")
        written = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "log").glob("model*")}
        (tmp_path / "go").touch()
        first.end()
    assert written == {
        path.name: path.stat().st_mtime_ns for path in (tmp_path / "log").glob("model*")
    }
