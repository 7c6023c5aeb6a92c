"""Tests of `tensorpack.utils.workers.processes`."""

import multiprocessing
import os
import signal
import threading
import time

import pytest

from tensorpack.utils.workers.processes import (
    ProcessGroup,
    ensure_proc_terminate,
    mask_sigint,
    start_proc_mask_signal,
    subproc_call,
)
from tests.processes import gone, wait_until

FORK = multiprocessing.get_context("fork")


def sleep_long(ready=None):
    if ready is not None:
        ready.set()
    time.sleep(60)


def refuse_to_leave(ready):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleep_long(ready)


def interrupt_self(context):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)


def make(count=1, target=sleep_long, args=()):
    return [FORK.Process(target=target, args=args) for _ in range(count)]


def test_a_group_ends_with_its_block_also_by_an_error():
    processes = make(2)
    with pytest.raises(KeyError):
        with ensure_proc_terminate(processes) as group:
            assert group.processes == processes and all(process.daemon for process in processes)
            start_proc_mask_signal(processes)
            assert all(process.is_alive() for process in processes)
            raise KeyError
    assert [process.exitcode for process in processes] == [-signal.SIGTERM] * 2


def test_a_process_that_does_not_leave_is_killed_and_one_not_started_is_left_alone():
    ready = FORK.Event()
    processes = make(target=refuse_to_leave, args=(ready,)) + make()
    start_proc_mask_signal(processes[0])
    assert ready.wait(5)
    ProcessGroup(processes).close(grace=0.1)
    assert processes[0].exitcode == -signal.SIGKILL and processes[1].pid is None


def test_a_thread_can_be_started_without_sigint_as_well():
    blocked = []
    thread = threading.Thread(target=lambda: blocked.extend(signal.pthread_sigmask(0, [])))
    start_proc_mask_signal(thread)
    thread.join(5)
    assert signal.SIGINT in blocked


FORGETFUL = """
import multiprocessing, time
from tensorpack.utils.concurrency import ensure_proc_terminate, start_proc_mask_signal
process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
start_proc_mask_signal(process)
ensure_proc_terminate(process)
print(process.pid)
"""


def test_ensured_processes_end_with_a_program_that_forgets_them(run_python):
    begin = time.monotonic()
    done = run_python(FORGETFUL)
    assert done.returncode == 0 and time.monotonic() - begin < 20
    assert wait_until(lambda: gone(int(done.stdout)), 5)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_started_processes_do_not_hear_sigint(method):
    process = multiprocessing.get_context(method).Process(target=interrupt_self, args=(None,))
    start_proc_mask_signal(process)
    process.join(20)
    assert process.exitcode == 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


class Interrupter:
    """Stands for a process during whose start Ctrl-C is pressed."""

    def start(self):
        # To this thread: another one would take it when it comes to run, perhaps too late.
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)


def test_an_interrupt_during_the_start_is_not_lost():
    with pytest.raises(KeyboardInterrupt):
        start_proc_mask_signal([Interrupter()])


def test_mask_sigint_ignores_and_restores_but_does_nothing_in_another_thread():
    def look():
        with mask_sigint() as masked:
            seen.append((masked, signal.getsignal(signal.SIGINT)))

    before, seen = signal.getsignal(signal.SIGINT), []
    with pytest.raises(KeyError):
        with mask_sigint() as masked:
            assert masked is True
            os.kill(os.getpid(), signal.SIGINT)
            raise KeyError
    thread = threading.Thread(target=look)
    thread.start()
    thread.join(5)
    assert seen == [(False, before)]


def test_subproc_call_returns_output_and_code_or_signal():
    assert subproc_call(cmd="echo out; echo err >&2; exit 3") == (b"out\nerr\n", 3)
    assert subproc_call(["echo", "a; b"]) == (b"a; b\n", 0)
    assert subproc_call(["sh", "-c", "kill -TERM $$"]) == (b"", 128 + signal.SIGTERM)
    output, code = subproc_call(["no-such-program-here"])
    assert code == -2 and b"no-such-program-here" in output


def test_subproc_call_kills_the_family_at_the_timeout_without_what_has_left_the_group():
    begin = time.monotonic()
    script = "setsid sleep 9 & sleep 60 & echo $!; sleep 60"
    output, code = subproc_call(["sh", "-c", script], timeout=0.5)
    assert code == -1 and time.monotonic() - begin < 8
    assert wait_until(lambda: gone(int(output)), 5)
