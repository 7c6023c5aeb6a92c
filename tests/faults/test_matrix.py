"""The fault matrix: real runs in real processes, each with one thing that goes wrong.

The numbers are those of the rows of `docs/reliability.md`. After every case the same is asked, see
`invariants.py`: that the process is gone in time, that it left nothing behind, that its exit code
and what it printed are true, that its statistics are in order.
"""

import signal
import time
from typing import NamedTuple, Tuple

import pytest

from tests.harness import Child

from .cases_errors import HOOKS
from .data import BAD_FIELDS, BAD_LATER
from .invariants import check
from .surroundings import Surroundings

QUICK_SECONDS = 10.0  # an end that may take no longer is timed with nothing beside it
INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


class Case(NamedTuple):
    """One run and what must come of it.

    Attributes:
      row: of the matrix.
      name: in `child.CASES`.
      code: the exit code.
      signals: what is sent once the child has printed the mark, 0.1 s apart.
      group: whether they go to the whole process group, as from a terminal.
      mark: what is waited for; by default the name.
      within: seconds from the last signal, or from the start, to the end.
      error: regular expression for the last line of the traceback; none is printed if empty.
      says: what must be in the output.
      never: what must not be in it.
      tolerates: words that no run prints, but this one may.
      fast: whether it belongs to the fast tier.
      module: what the child runs.
    """

    row: int
    name: str
    code: int
    signals: Tuple[int, ...] = ()
    group: bool = False
    mark: str = ""
    within: float = 60.0
    error: str = ""
    says: Tuple[str, ...] = ()
    never: Tuple[str, ...] = ("PHASE done",)
    tolerates: Tuple[str, ...] = ()
    fast: bool = False
    module: str = "tests.faults"

    def __str__(self):
        sent = "-".join(signal.Signals(each).name for each in self.signals)
        how = ("-group" if self.group else "-pid") if sent else ""
        return f"row{self.row}-{self.name}" + ("-" + sent + how if sent else "")


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
TERM_TO_GROUP = ("graph", "populate", "blocked")  # SIGTERM is mostly sent to one process
FAST_PHASES = [("graph", INT, True), ("step", TERM, False)]


def phase_cases():
    for row, name, mark, within, began in PHASES:
        for signum in (INT, TERM):
            for group in (False, True):
                if group and signum == TERM and name not in TERM_TO_GROUP:
                    continue
                says = ("exiting main loop",) + (("PHASE after_train",) if began else ())
                never = ("PHASE done",) + (() if began else ("PHASE after_train",))
                yield Case(
                    row=row if signum == INT else 9,
                    name=name,
                    code=128 + signum,
                    signals=(signum,),
                    group=group,
                    mark=mark,
                    within=within,
                    says=says,
                    never=never,
                    fast=(name, signum, group) in FAST_PHASES,
                )


OTHER_SIGNALS = [
    # a run that had finished before the signal has finished
    Case(9, "teardown", 0, (INT,), says=("PHASE after_train", "Training has finished!")),
    Case(9, "teardown", 0, (TERM,), group=True, says=("PHASE after_train",)),
    Case(8, "slow_teardown", 130, (INT, INT), within=3.0, says=("Once more", "PHASE after_train")),
    Case(8, "blocked", 130, (INT, INT), True, within=5.0, says=("PHASE after_train",)),
    Case(8, "deaf_flow", 130, (INT,), mark="deaf", within=6.0, says=("Cannot join thread",)),
    Case(8, "deaf_callback", 130, (INT,), mark="deaf", within=4.0, says=("within 2 seconds",)),
    Case(9, "deaf_callback", 143, (TERM,), mark="deaf", within=4.0, says=("within 2 seconds",)),
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
    Case(25, "queue_closed_with_cancelling", 1, error=r".*QueueClosed: .*input_queue", says=ENDED),
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
    for hook in HOOKS:
        began = hook != "setup_graph"
        yield Case(
            row=27,
            name="hook_" + hook,
            code=1,
            error="LookupError: the callback is broken",
            says=(ENDED if began else ()) + (("PHASE last",) if hook == "after_train" else ()),
            never=("PHASE done",) + (() if began else ENDED),
        )


def field_cases():
    error = r"(TypeError|ValueError): .*"
    for name in sorted(BAD_FIELDS):
        yield Case(34, "field_" + name, 1, error=error, says=ENDED)
    for name in BAD_LATER:
        yield Case(34, f"field_{name}_later", 1, error=error, says=ENDED)
    yield Case(34, "too_few_fields", 1, error=error, says=ENDED)


REST = [
    Case(0, "finishes", 0, says=("PHASE done", "Training has finished!"), never=()),
    Case(38, "log_dir_vanishes", 0, says=("Training has finished!",)),
    Case(43, "twice", 0, says=("PHASE refused: A trainer runs once",)),
    Case(43, "in_a_thread", 0, says=("PHASE errors: []", "Training has finished!")),
]
TABLE = [*phase_cases(), *OTHER_SIGNALS, *ERRORS, *hook_cases(), *field_cases(), *REST]


def provoke(case, child):
    """Sends the signals of a case; returns the exit code and the seconds that the end took."""
    start = time.monotonic()
    if case.signals:
        child.wait_for(f"PHASE {case.mark or case.name}")
        for number, signum in enumerate(case.signals):
            time.sleep(0.1 if number else 0.0)
            child.send(signum, group=case.group)
        start = time.monotonic()
    code = child.process.wait(max(60, case.within))
    return code, time.monotonic() - start


def run(case, tmp_path, action="", enclosed=(), env=None):
    """Runs a case and checks what must hold after each; returns the child.

    Args:
      case: a `Case`.
      tmp_path: a directory for it alone.
      action: what to do with a log directory that is there.
      enclosed: arguments of `enclosed.py`, if it is to be run through that.
      env: added to the environment.
    """
    around = Surroundings(tmp_path)
    log = tmp_path / "log"
    through = ("-m", "tests.faults.enclosed", *enclosed) if enclosed else ()
    child = Child(
        *through, "-m", case.module, case.name, log, action, env={**around.env, **(env or {})}
    )
    try:
        code, took = provoke(case, child)
    finally:
        child.end(timeout=0 if child.process.poll() is None else 60)
    check(case, child.output, code, took, log, around)
    return child


def marks(case):
    """The marks of a case: its row, whether its end must be quick, and which tier it belongs to."""
    found = [pytest.mark.fault_row(case.row)] if case.row else []
    if case.within <= QUICK_SECONDS:
        found.append(pytest.mark.timed)
    return found if case.fast else [*found, pytest.mark.slow]


@pytest.mark.parametrize("case", [pytest.param(each, marks=marks(each)) for each in TABLE], ids=str)
def test_a_fault_ends_the_run_truthfully(case, tmp_path):
    run(case, tmp_path)
