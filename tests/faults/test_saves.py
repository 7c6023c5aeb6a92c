"""Rows 6, 17, 18 and 59 of the matrix: a save that is interrupted, disks that are full."""

import pytest

from tensorpack.tfutils.checkpoint import CheckpointStore, newest_valid
from tensorpack.utils.checkpoints import get_all_checkpoints

from .enclosed import can_mount
from .run_case import INT, TERM, Case
from .test_matrix import ENDED

needs_a_disk = pytest.mark.skipif(not can_mount(), reason="needs the right to mount")
LAST_SAVE = r"RuntimeError: The last save of the model to .* failed"


def steps(directory):
    return sorted(step for _, step in get_all_checkpoints(directory))


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.fault_row(6)
@pytest.mark.parametrize("signals", [(TERM,), (INT, INT)], ids=str)
def test_a_signal_in_a_save_lets_it_finish(signals, run, tmp_path):
    says = ("Model saved to", *ENDED)
    run(Case(6, "save", 128 + signals[0], signals, group=True, within=5.0, says=says))
    assert steps(tmp_path / "log") == [20, 40]
    assert newest_valid(str(tmp_path / "log")).endswith("model-40")


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.fault_row(6)
def test_a_save_that_is_cut_off_leaves_the_one_before(run, tmp_path):
    case = Case(6, "long_save", 130, (INT,) * 3, mark="save", within=1.5, says=("third time",))
    run(case)
    log = tmp_path / "log"
    assert steps(log) == [20]
    assert newest_valid(str(log)).endswith("model-20")
    CheckpointStore(str(log))  # as the next run has one
    assert not list(log.glob("model-40*"))


@pytest.mark.slow
@pytest.mark.fault_row(17)
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("small_files_for_a_while", marks=pytest.mark.one_row),
        pytest.param("disk_full_for_a_while", marks=needs_a_disk),
        pytest.param("disk_full_at_the_end", marks=needs_a_disk),
    ],
)
def test_a_full_disk_costs_the_saves_that_it_hits(name, run, tmp_path):
    if name.endswith("for_a_while"):
        done = ("Training has finished!", "PHASE models [20, 80]")
        case = Case(17, name, 0, says=done, never=("models failed",))
    else:
        case = Case(17, name, 1, error=LAST_SAVE, says=("PHASE models [20]", *ENDED))
    (tmp_path / "disk").mkdir()
    enclosed = ("disk", "3m", tmp_path / "disk") if name.startswith("disk") else ()
    output = run(case._replace(enclosed=enclosed)).output
    for step in (40, 60):
        assert output.count(f"model-{step}, the next period tries again: ") == 1, output


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.fault_row(18)
@needs_a_disk
def test_a_full_disk_of_the_log_does_not_touch_the_training(run, tmp_path):
    (tmp_path / "log").mkdir()
    says = ("Training has finished!", "PHASE models [20, 40, 60, 80, 100]")
    child = run(Case(18, "log_disk_full", 0, says=says, enclosed=("disk", "1m", tmp_path / "log")))
    for warning in ("Cannot write events to", "stats.json, the training continues", "log.log (OSE"):
        assert child.output.count(warning) == 1, f"{warning}: {child.output}"


@pytest.mark.slow
@pytest.mark.fault_row(59)
@needs_a_disk
def test_a_disk_that_is_full_for_an_epoch_costs_the_files_of_callbacks_in_it(run, tmp_path):
    (tmp_path / "log").mkdir()
    case = Case(59, "log_disk_full_for_an_epoch", 0, says=("Training has finished!",))
    output = run(case._replace(enclosed=("disk", "8m", tmp_path / "log"))).output
    for name in ("DumpTensors", "DumpTensorAsImage", "GraphProfiler"):
        assert output.count(f"{name} cannot write") == 1, output
    for pattern in (
        "DumpTensor-{}.npz",
        "chrome-trace-{}.json",
        "runmetadata-{}.pb",
        "weight-{1}.png",
    ):
        assert f"PHASE {pattern} [20, 60]" in output, output
