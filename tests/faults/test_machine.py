"""Rows 39, 42 and 45 of the matrix: the clock, what the system has only so much of, and memory."""

import glob
import re

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.utils.checkpoints import get_all_checkpoints

from .enclosed import can_be_counted, can_mount
from .run_case import Case, params
from .test_matrix import ENDED

CLOCK = "tests.faults.jumping_clock"


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.fault_row(39)
def test_a_clock_that_jumps_by_days_changes_nothing(run, tmp_path):
    says = ("Training has finished!", "PHASE done")
    case = Case(39, "many_epochs", 0, says=says, never=(), fresh=True, module=CLOCK)
    child = run(case, env={"TENSORPACK_PROGRESS_REFRESH": "0.001"})
    # [elapsed<left,rate] of the bars, and the times of the epochs
    times = re.findall(r"\[(\S*?)<(\S*?),", child.output)
    assert len(times) > 24 and not [
        shown for shown in times if re.search(r"-|\d:\d\d:", str(shown))
    ]
    epochs = [float(shown) for shown in re.findall(r"finished, time:(\S+) sec", child.output)]
    assert len(epochs) == 12 and 0 <= min(epochs) and max(epochs) < 60
    # none was kept for ever because half an hour had passed
    assert len(get_all_checkpoints(tmp_path / "log")) == 2
    (path,) = glob.glob(str(tmp_path / "log" / "events.out.tfevents.*"))
    order = [event.step for event in tf.train.summary_iterator(path)]
    assert order == sorted(order) and order[-1] == 12 * 20


TOO_MANY = r"OSError: .*Too many open files"
LAST_SAVE = r"RuntimeError: The last save of the model to .* failed"
NO_THREAD = r"RuntimeError: can't start new thread"
WITHOUT_FILES = [
    Case(42, "no_files_for_the_session", 1, error=TOO_MANY, never=("Start Epoch",)),
    Case(42, "no_files_in_a_step", 1, error=LAST_SAVE, says=ENDED),
]
WITHOUT_THREADS = Case(
    42, "no_threads_before_the_training", 1, error=NO_THREAD, says=ENDED, enclosed=("user",)
)
FULL_SHM = ("disk", "64k", "/dev/shm")
NO_LOCK = r"OSError: .*No space left"
WITHOUT_SHARED_MEMORY = [
    Case(42, "no_shared_memory", 0, says=("PHASE done",), never=(), enclosed=FULL_SHM),
    Case(42, "no_shared_memory_for_a_lock", 1, error=NO_LOCK, says=ENDED, enclosed=FULL_SHM),
]
is_counted = pytest.mark.skipif(not can_be_counted(), reason="needs setpriv: root is not counted")
mounts = pytest.mark.skipif(not can_mount(), reason="needs the right to mount")


@pytest.mark.parametrize(
    "case",
    params(WITHOUT_FILES)
    + params([WITHOUT_THREADS], is_counted)
    + params(WITHOUT_SHARED_MEMORY, mounts),
)
def test_a_run_ends_with_an_error_where_the_system_has_no_more(case, run):
    run(case)


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.fault_row(45)
def test_a_long_run_does_not_grow(run):
    case = Case(45, "long_run", 0, within=240.0, says=("PHASE operations added: 0",))
    child = run(case)
    grown = float(re.search(r"PHASE grown by (\S+) MB", child.output).group(1))
    assert grown < 1.0, child.output
