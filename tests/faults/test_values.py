"""Rows 24 and 35 of the matrix: numbers that are not finite, and memory that is reused."""

import pytest

from tensorpack.utils.checkpoints import get_all_checkpoints

from .run_case import Case, params
from .test_matrix import ENDED

NON_FINITE, NAN = r".*NonFiniteError: ", "cost is nan"
BREAKING = [
    Case(24, name, 1, error=f"{NON_FINITE}{what} at global_step 45", says=ENDED, fast=what == NAN)
    for name, what in [("nan_from_data", NAN), ("log_of_zero", "entropy is -inf")]
]


@pytest.mark.parametrize("case", params(BREAKING))
def test_a_number_that_is_not_finite_ends_the_run_before_it_is_saved(case, run, tmp_path):
    run(case)
    assert sorted(step for _, step in get_all_checkpoints(tmp_path / "log")) == [20, 40]


@pytest.mark.slow
@pytest.mark.fault_row(24)
def test_weights_that_break_in_the_last_step_of_an_epoch_are_not_saved(run, tmp_path):
    error = NON_FINITE + r".*\bscale\b.*\b40\b"
    run(Case(24, "weights_break_unseen", 1, error=error, says=ENDED))
    assert [step for _, step in get_all_checkpoints(tmp_path / "log")] == [20]


@pytest.mark.slow
@pytest.mark.fault_row(35)
@pytest.mark.parametrize("name", ["memory_reused", "memory_reused_without_a_queue"])
def test_what_is_trained_on_is_what_was_yielded(name, run):
    run(Case(35, name, 0, says=("PHASE in order until 60", "Training has finished!")))
