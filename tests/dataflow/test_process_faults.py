"""What goes wrong in a process is told by whoever iterates, and no process is left behind."""

import itertools
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from tensorpack.dataflow import DataFlowTerminated, MapData
from tensorpack.dataflow.process_map import MultiProcessMapAndBatchData, MultiProcessMapData
from tensorpack.utils._tracebacks import notes_of
from tensorpack.utils.workers.worker_errors import WorkerDied, WorkerFailed
from tests.checks import ROOT
from tests.dataflow import process_functions as functions
from tests.dataflow.process_flows import closing, mixture
from tests.dataflow.process_functions import FailsAtReset, numbers
from tests.processes import LONG, SOON, gone, in_thread, wait_until
from tests.tiers import first_fast

KINDS = {
    "mixture": lambda func: mixture(MapData(numbers(40), func), 2),
    "map": lambda func: MultiProcessMapData(numbers(40), 2, func, start_method="fork"),
    "strict map": lambda func: MultiProcessMapData(
        numbers(40), 2, func, strict=True, start_method="fork"
    ),
    "batches": lambda func: MultiProcessMapAndBatchData(
        numbers(40), 2, func, 4, start_method="fork"
    ),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def children():
    return [process.pid for process in multiprocessing.active_children()]


@pytest.mark.timed
@every_kind
def test_a_process_that_is_killed_is_named_within_a_second(kind):
    with closing(KINDS[kind](functions.At(3, functions.sleep))) as flow:
        flow.reset_state()
        thread, errors = in_thread(list, flow)
        pids = children()
        time.sleep(0.1)  # better to be killed at work, but anywhere will do
        begin = time.monotonic()
        os.kill(pids[1], signal.SIGKILL)
        thread.join(LONG)
        assert time.monotonic() - begin < SOON
    (error,) = errors
    assert isinstance(error, WorkerDied)
    assert error.signum == signal.SIGKILL and error.pid == pids[1]
    assert f"(pid {pids[1]}) was killed by SIGKILL" in str(error)
    assert all(gone(pid) for pid in pids)


@every_kind
@pytest.mark.parametrize(
    "action, error, message",
    [
        (functions.be_killed, WorkerDied, "SIGKILL"),
        (functions.crash, WorkerDied, "SIGSEGV(.|\n)*in string_at"),
        (functions.leave, WorkerFailed, "SystemExit: 3"),
        (functions.fail, LookupError, "no such datapoint"),
        (functions.fail_unpicklably, WorkerFailed, "it holds a function"),
    ],
)
def test_what_happens_at_a_datapoint(kind, action, error, message):
    with closing(KINDS[kind](functions.At(20, action))) as flow:
        for _ in range(2):  # the second time with new processes, or the same
            with pytest.raises(error, match=message) as caught:
                while True:
                    list(flow)
            if error is not WorkerDied:
                assert f"in {action.__name__}" in str(caught.value.__cause__)
    assert children() == []


UNFIT = r"^\[1\]\['it'\]\[0\]: a lock cannot be pickled"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "batches"])
def test_what_cannot_be_sent_is_named_with_its_datapoint(kind):
    with closing(KINDS[kind](functions.unfit_at_3)) as flow:
        for _ in range(2):
            with pytest.raises(TypeError, match=UNFIT) as caught:
                list(flow)
            assert "failed on datapoint 3 (counted" in notes_of(caught.value)[0]
    if "map" in kind:  # as well as what cannot be sent to a process
        with closing(KINDS[kind](functions.same)) as flow:
            flow.ds = MapData(numbers(8), functions.unfit_at_3)
            with pytest.raises(TypeError, match=UNFIT) as caught:
                list(flow)
            assert "Data failed on datapoint 3 (counted" in notes_of(caught.value)[0]


UNREADABLE = (
    "An object of .*process_functions.NeedsTwo can be pickled, but not unpickled: TypeError"
)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "batches"])
def test_what_cannot_be_unpickled_is_named_with_its_worker(kind):
    with closing(KINDS[kind](functions.unreadable_at_3)) as flow:
        with pytest.raises(RuntimeError, match=UNREADABLE) as caught:
            list(flow)
        (note,) = notes_of(caught.value)
        assert note.startswith("Worker 'MultiProcess") and "sent it as number " in note


def test_what_a_process_cannot_unpickle_is_named_as_well():
    source = MapData(numbers(8), functions.unreadable_at_3)
    with closing(MultiProcessMapData(source, 1, functions.same, start_method="fork")) as flow:
        with pytest.raises(RuntimeError, match=UNREADABLE) as caught:
            list(flow)
        assert notes_of(caught.value) == ["The program sent it as number 3, counted from 0."]
        assert "in worker 'MultiProcessMapData 0'" in str(caught.value.__cause__)


def test_a_flow_that_cannot_be_reset():
    with closing(mixture(FailsAtReset(5), 2)) as flow:
        with pytest.raises(OSError, match="no such file") as caught:
            list(flow)
        assert "in reset_state" in str(caught.value.__cause__)


def test_a_process_that_is_stopped_does_not_hold_up_the_others():
    stops, options = functions.At(0, functions.stop), {"buffer_size": 8, "start_method": "fork"}
    with closing(MultiProcessMapData(numbers(100), 2, stops, **options)) as flow:
        assert [0] not in itertools.islice(flow, 90)


@pytest.mark.timed
def test_reset_state_does_not_wait_for_a_pass_that_waits():
    ds = MapData(numbers(9), functions.At(5, functions.sleep))
    with closing(mixture(ds, 1)) as flow:
        thread, errors = in_thread(list, flow)
        time.sleep(0.3)
        begin = time.monotonic()
        flow.reset_state()
        assert time.monotonic() - begin < SOON and thread.is_alive()
    thread.join(LONG)
    assert [type(error) for error in errors] == [DataFlowTerminated]


@every_kind
def test_one_that_is_stopped_continues_when_it_is_woken(kind):
    with closing(KINDS[kind](functions.At(20, functions.stop))) as flow:
        found = []
        thread, errors = in_thread(found.extend, flow)
        deadline = time.monotonic() + LONG
        while thread.is_alive() and time.monotonic() < deadline:
            for pid in children():
                os.kill(pid, signal.SIGCONT)
            thread.join(0.05)
        assert errors == [] and len(found) == (10 if kind == "batches" else 40)


@every_kind
def test_one_that_is_stopped_for_ever_is_ended_by_close(kind):
    flow = KINDS[kind](functions.same)
    flow.reset_state()
    pids = children()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    thread, errors = in_thread(list, flow)
    begin = time.monotonic()
    flow.close()
    thread.join(LONG)
    assert time.monotonic() - begin < 5
    for error in errors:  # none if the thread came late
        with pytest.raises(DataFlowTerminated):
            raise error
    flow.close()
    assert all(gone(pid) for pid in pids) and children() == []


def test_ctrl_c_ends_a_pass_and_the_next_one_is_whole():
    with closing(mixture(MapData(numbers(9), functions.At(5, functions.sleep)), 1)) as flow:
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            list(flow)
        timer.join()
        assert children() == []
        flow.ds = numbers(9)
        assert list(flow) == [[i] for i in range(9)]


PROGRAM = """
import faulthandler, os, sys, threading, time
faulthandler.dump_traceback_later(40, exit=True)
from tensorpack.dataflow import MapData
from tensorpack.dataflow.processes import MultiProcessRunner
from tensorpack.dataflow.process_map import MultiProcessMapData
from tests.dataflow import process_functions as functions

def make(kind, func, method=None):
    if kind == "map":
        return MultiProcessMapData(functions.Endless(), 2, func, start_method=method)
    return MultiProcessRunner(MapData(functions.Endless(), func), 8, 2, start_method=method)

def workers(flow):
    return [worker.process.pid for worker in flow._pools._all[0]._workers]

def main():
"""


def program(body, *args):
    """Starts a Python that runs this as the body of `main`."""
    text = PROGRAM + "\n".join("    " + line for line in body.strip().splitlines()) + "\nmain()\n"
    return subprocess.Popen(
        [sys.executable, "-c", text, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


WORKS = """
flow = make(sys.argv[1], functions.same, "fork")
going = iter(flow)
next(going)
print(*workers(flow), flush=True)
for _ in going:
    if len(sys.argv) > 2:
        break
"""


@pytest.mark.timed
@pytest.mark.parametrize("kind", ["mixture", "map"])
def test_processes_die_with_a_consumer_that_is_killed(kind):
    with program(WORKS, kind) as process:
        pids = [int(pid) for pid in process.stdout.readline().split()]
        assert len(pids) == 2 and not any(gone(pid) for pid in pids)
        begin = time.monotonic()
        process.kill()
        assert wait_until(lambda: all(gone(pid) for pid in pids))
        assert time.monotonic() - begin < SOON


LEAVES = """
flow = make("mixture", functions.At(int(sys.argv[1]), functions.stop), "fork")
going = iter(flow)
next(going)
print(*workers(flow), flush=True)
time.sleep(0.2)
sys.kept = [flow, going]  # until the interpreter ends
"""


@pytest.mark.parametrize("stopped", ["-1", "2"])
def test_a_program_that_just_ends_leaves_nothing(stopped):
    """Not even if it left a flow open with a process that is stopped."""
    with program(LEAVES, stopped) as process:
        output, _ = process.communicate(timeout=LONG)
        assert process.returncode == 0, output
        pids = [int(pid) for pid in output.split()]
        assert len(pids) == 2 and all(gone(pid) for pid in pids)


def test_ctrl_c_prints_one_traceback():
    with program(WORKS, "mixture") as process:
        pids = [int(pid) for pid in process.stdout.readline().split()]
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=LONG)
        assert output.count("Traceback") == 1 and "KeyboardInterrupt" in output
        assert all(gone(pid) for pid in pids)


HOLDS_A_LOCK = """
go_on, taken = threading.Event(), threading.Event()
def hold():
    with functions.LOCK:
        taken.set()
        while not go_on.is_set():  # it works
            pass
thread = threading.Thread(target=hold)
thread.start()
taken.wait()
flow = make(sys.argv[1], functions.locked)
going = iter(flow)
print([len(next(going)) for _ in range(20)] == [1] * 20, flush=True)
flow.close()
go_on.set()
thread.join()
"""


def run_script(tmp_path, text, argument, by_stdin=False):
    """Runs a script of its own, which gets an argument."""
    script = tmp_path / "script.py"
    script.write_text(text)
    with open(script) as file:
        return subprocess.run(
            [sys.executable, "-" if by_stdin else str(script), argument],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            timeout=60,
        )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mixture", "map"])
def test_no_process_has_the_copy_of_a_lock_that_a_thread_at_work_holds(kind, tmp_path):
    body = "\n".join("    " + line for line in HOLDS_A_LOCK.strip().splitlines())
    guard = '\n\nif __name__ == "__main__":\n    main()\n'
    done = run_script(tmp_path, PROGRAM + body + guard, kind)
    assert (done.returncode, done.stdout) == (0, "True\n")


NEEDS_A_GUARD = """
import sys
from tensorpack.dataflow import DataFromList, MapData, PrefetchDataZMQ
def run(func):
    flow = PrefetchDataZMQ(MapData(DataFromList([[1]]), func), start_method=sys.argv[1])
    flow.reset_state()
    print(list(flow))
    flow.close()
"""
NO_GUARD = "run(abs)\n"
INNER = """
if __name__ == "__main__":
    def inner(datapoint):
        return datapoint
    run(inner)
"""
OUTER = """
def outer(datapoint):
    return datapoint
if __name__ == "__main__":
    run(outer)
"""


@pytest.mark.parametrize("method", first_fast(["forkserver", "spawn"]))
@pytest.mark.parametrize(
    "text, by_stdin, reason",
    [
        (NO_GUARD, False, "RuntimeError: \n *An attempt has been made to start a new process"),
        (INNER, False, "AttributeError: .*inner.*\n(.*\n)*The above exception was the direct"),
        (INNER, True, "FileNotFoundError: .*<stdin>"),
    ],
    ids=["no guard", "inner function", "standard input"],
)
def test_a_process_that_cannot_begin_says_why(tmp_path, method, text, by_stdin, reason):
    output = run_script(tmp_path, NEEDS_A_GUARD + text, method, by_stdin).stdout
    assert re.search(reason, output)
    assert text == INNER and not by_stdin or "exit code 1. It could not start; " in output
    assert "`if __name__ == '__main__':`" in output and "start_processes()" in output


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_script_with_a_guard_or_whose_processes_are_forked_has_its_data(tmp_path, method):
    text = NO_GUARD.replace("abs", "list") if method == "fork" else OUTER
    assert run_script(tmp_path, NEEDS_A_GUARD + text, method).stdout == "[[1]]\n"


NEEDS_A_CONFIGURATION = """
CONFIGURATION = {}
def configured(datapoint):
    return [CONFIGURATION["size"]]
if __name__ == "__main__":
    CONFIGURATION["size"] = 3
    run(configured)
"""


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_what_a_new_process_lacks_is_explained(tmp_path, method):
    output = run_script(tmp_path, NEEDS_A_GUARD + NEEDS_A_CONFIGURATION, method).stdout
    if method == "fork":
        assert output == "[[3]]\n"
    else:
        assert "KeyError: 'size'" in output
        assert "The worker is a new process, not a fork of this one" in output
        assert "start_method='fork'" in output
