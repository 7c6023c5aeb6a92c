"""The fault matrix: real runs in real processes, each with one thing that goes wrong.

The numbers are those of the rows of `docs/reliability.md`. After every case the same is asked, see
`run_case.py`: that the process is gone in time, that it left nothing behind, that its exit code
and what it printed are true, that its statistics are in order.
"""

import pytest

from .run_case import HUP, INT, TERM, Case, params

# --- Signals: (row, name, mark, seconds that the end may take, whether after_train has its turn)
PHASES = [
    (1, "graph", "", 2.0, False),
    (2, "restore", "", 2.0, False),
    (2, "restore_in_an_op", "restore", 5.0, False),
    (3, "populate", "", 3.0, True),
    (4, "blocked", "", 5.0, True),
    (5, "compute", "", 8.0, True),
    (5, "step", "", 5.0, True),
    (7, "evaluate", "", 5.0, True),
]
FAST_PHASES = [("graph", INT), ("step", TERM)]


def phase_cases():
    """Ctrl-C, which a terminal sends to the group, and SIGTERM, mostly sent to one process."""
    for row, name, mark, within, began in PHASES:
        for signum in (INT, TERM):
            yield Case(
                row=row if signum == INT else 9,
                name=name,
                code=128 + signum,
                signals=(signum,),
                group=signum == INT,
                mark=mark,
                within=within,
                says=("exiting main loop",) + (("PHASE after_train",) if began else ()),
                never=("PHASE done",) + (() if began else ("PHASE after_train",)),
                fast=(name, signum) in FAST_PHASES,
                one_row=signum == TERM,
            )


OTHER_SIGNALS = [
    # a run that had finished before the signal has finished
    Case(9, "teardown", 0, (INT,), says=("PHASE after_train", "Training has finished!")),
    Case(9, "teardown", 0, (TERM,), group=True, says=("PHASE after_train",)),
    Case(
        8,
        "slow_teardown",
        130,
        (INT, INT),
        within=3.0,
        says=("One more signal", "PHASE after_train"),
    ),
    Case(4, "blocked", 130, (INT,), within=5.0, says=("PHASE after_train",)),
    Case(8, "deaf_flow", 130, (INT,), mark="deaf", within=6.0, says=("Cannot join thread",)),
    Case(8, "deaf_callback", 130, (INT,), mark="deaf", within=4.0, says=("within 2 seconds",)),
    Case(8, "patient_callback", 130, (INT,) * 3, True, "deaf", 1.5, "", ("third time",)),
    Case(9, "patient_callback", 143, (TERM,) * 3, False, "deaf", 1.5, "", ("third time",)),
    Case(47, "op_hangs", 130, (INT,), mark="hangs", within=4.0, says=("within 2 seconds",)),
    Case(47, "op_hangs_in_lockstep", 143, (TERM,), mark="hangs", within=4.0),
    Case(10, "step", 129, (HUP,), True, within=5.0, says=("PHASE after_train",)),
]

NO_DATAPOINT = r"LookupError: no such datapoint"
ENDED = ("PHASE after_train",)
ERRORS = [
    Case(12, "item_breaks", 1, error=NO_DATAPOINT, says=ENDED + ("in breaks",), fast=True),
    Case(12, "reset_breaks", 1, error=NO_DATAPOINT, says=ENDED + ("in breaks",)),
    Case(12, "thread_breaks", 1, error=NO_DATAPOINT, says=ENDED + ("in breaks",)),
    Case(12, "evaluation_breaks", 1, error=NO_DATAPOINT, says=ENDED + ("in evaluates",)),
    Case(13, "empty", 1, error=r".*DataFlowEmpty: .*without a single datapoint", says=ENDED),
    Case(13, "finite", 1, error=r".*DataEnded: .*at step 6 of 20 of epoch 2", says=ENDED),
    Case(25, "queue_closed_by_a_callback", 1, error=r".*QueueClosed: .*input_queue", says=ENDED),
    Case(25, "queue_closed_by_another_thread", 1, error=r".*QueueClosed: ", says=ENDED),
    Case(
        row=26,
        name="session_closed",
        code=1,
        error=r".*(Error|QueueClosed): .*closed",
        says=ENDED,
        # TensorFlow says it when a session is closed while somebody waits in it
        tolerates=("Skipping cancelled",),
    ),
    Case(26, "other_graph", 1, error=r"ValueError: .*not an element of this graph", says=ENDED),
]


def hook_cases():
    for hook in ("setup_graph", "before_run", "trigger_epoch", "after_train"):
        began = hook != "setup_graph"
        yield Case(
            row=27,
            name="hook_" + hook,
            code=1,
            error="LookupError: the callback is broken",
            says=(ENDED if began else ()) + (("PHASE last",) if hook == "after_train" else ()),
            never=("PHASE done",) + (() if began else ENDED),
        )


REST = [
    *(
        Case(34, name, 1, error=r"(TypeError|ValueError): .*", says=ENDED)
        for name in ("none", "wrong_rank_later", "too_few_fields")
    ),
    Case(0, "finishes", 0, says=("PHASE done", "Training has finished!"), never=()),
    Case(38, "log_dir_vanishes", 0, says=("Training has finished!",)),
    Case(43, "twice", 0, says=("PHASE refused: A trainer runs once",)),
    Case(43, "in_a_thread", 0, says=("PHASE errors: []", "Training has finished!")),
]
TABLE = [*phase_cases(), *OTHER_SIGNALS, *ERRORS, *hook_cases(), *REST]


@pytest.mark.parametrize("case", params(TABLE))
def test_a_fault_ends_the_run_truthfully(case, run):
    run(case)


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.fault_row(44)
def test_the_interpreter_ends_in_order_with_daemon_threads(run, tmp_path):
    for number in range(20):
        directory = tmp_path / str(number)
        directory.mkdir()
        run(Case(44, "daemons", 0, says=("PHASE done",), never=()), directory)
