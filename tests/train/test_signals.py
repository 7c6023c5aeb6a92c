"""Signals escalate, and a step that does not come back is unblocked."""

import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.train.signals import SignalGuard
from tensorpack.utils.stopping import Failed, Interrupted, StopRequested, StopToken
from tests.processes import wait_until


def send(signum=signal.SIGINT):
    os.kill(os.getpid(), signum)


@pytest.mark.parametrize("signalled", [False, True])
def test_a_step_that_hangs_is_unblocked_on_another_thread(signalled, capfd):
    token, threads = StopToken(), []
    with SignalGuard(token, lambda: threads.append(threading.current_thread())):
        if signalled:
            send()
        else:
            token.request(Failed(ValueError(), "feeder"))
        wait_until(lambda: threads)
        wait_until(lambda: len(threads) > 1)  # it is tried again until the loop is left
    assert len(set(threads)) == 1 and threads[0] is not threading.current_thread()
    said = "Stopping when the running step or callback is over."
    assert capfd.readouterr().out.count(said) == signalled


def test_what_blocks_stops_neither_the_counting_nor_the_deadline(monkeypatch):
    token, codes, release = StopToken(), [], threading.Event()
    token.on_request(release.wait)  # as a reader of the log does that has stopped reading
    monkeypatch.setattr(os, "_exit", codes.append)
    with SignalGuard(token) as guard:
        guard.in_loop = False
        send()
        send()
        wait_until(lambda: guard.skip_optional)
        send()
        wait_until(lambda: codes)
        release.set()
    assert codes[0] == 130


def test_nothing_is_unblocked_once_the_loop_is_left():
    token, calls = StopToken(), []
    with SignalGuard(token, lambda: calls.append(1)) as guard:
        guard.in_loop = False
        token.request(Interrupted(2))
        time.sleep(0.7)  # longer than a step is waited for
    assert calls == []


def test_a_signal_interrupts_a_setup_that_does_not_look_at_the_token_and_nothing_later():
    token = StopToken()
    with SignalGuard(token) as guard:
        guard.in_loop = False
        with pytest.raises(StopRequested):
            guard.interruptible(lambda: (send(), time.sleep(5)))
        assert token.wait(5) and token.reason == Interrupted(signal.SIGINT)
        send()  # the setup is over: nothing is raised any more
        time.sleep(0.01)


def test_cleaning_up_after_the_interruption_is_not_interrupted_again():
    cleaned = []

    def setup():
        try:
            send()
            time.sleep(5)
        finally:
            send()
            time.sleep(0.1)
            cleaned.append(1)

    with SignalGuard(StopToken()) as guard, pytest.raises(StopRequested):
        guard.in_loop = False
        guard.interruptible(setup)
    assert cleaned == [1]


def while_building(wait):
    tf.cond(tf.constant(True), lambda: (wait(), tf.constant(1))[1], lambda: tf.constant(2))


def while_running(wait):
    with tf.Session() as sess:
        sess.run(tf.py_func(lambda: (wait(), 7.0)[1], [], tf.float64))


@pytest.mark.parametrize("call_in_tensorflow", [while_building, while_running])
def test_nothing_is_raised_into_tensorflow(call_in_tensorflow):
    tape = []

    def wait():
        tape.append("begin")
        send()
        time.sleep(0.2)
        tape.append("end")

    def setup():
        call_in_tensorflow(wait)
        tape.append("left")

    with SignalGuard(StopToken()) as guard, pytest.raises(StopRequested):
        guard.interruptible(setup)
    assert tape == ["begin", "end"]  # and what follows is interrupted
    assert sys.getprofile() is None


def test_a_scope_of_tensorflow_that_is_entered_is_left():
    tape = []
    names = {"__name__": "tensorflow.scopes", "enter": send, "leave": lambda: tape.append("left")}
    exec("def scope():\n enter()\n yield\n leave()\n", names)

    def setup():
        with contextmanager(names["scope"])():
            tape.append("entered")
        tape.append("over")

    with SignalGuard(StopToken()) as guard, pytest.raises(StopRequested):
        guard.interruptible(setup)
    assert tape == ["entered", "left"]


class Slow:
    """A block that takes its time to begin and to end."""

    def __init__(self, tape, at):
        self._tape, self._at = tape, at

    def _pass(self, point):
        if point == self._at:
            send()
            time.sleep(0.1)
        self._tape.append(point)

    def __enter__(self):
        self._pass("enter")

    def __exit__(self, *exc_info):
        self._pass("exit")


@pytest.mark.parametrize("at", ["enter", "exit"])
def test_a_block_that_is_entered_is_left(at):
    tape = []

    def setup():
        with Slow(tape, at):
            pass
        time.sleep(5)

    with SignalGuard(StopToken()) as guard, pytest.raises(StopRequested):
        guard.interruptible(setup)
    assert tape == ["enter", "exit"]


def test_a_worker_of_a_group_is_not_interrupted_in_a_step_unless_all_end():
    token, signal_token, tape = StopToken(), StopToken(), []
    with SignalGuard(token, signal_token=signal_token) as guard:
        guard.interruptible(lambda: (send(), signal_token.wait(5), tape.append("whole")))
        assert tape == ["whole"] and not token.requested
        token.request(signal_token.reason)
        with pytest.raises(StopRequested):
            guard.interruptible(lambda: tape.append("begun"))
    assert tape == ["whole"]


def test_handlers_are_put_back_and_a_descriptor_that_was_there_hears_the_signals():
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    reader, writer = socket.socketpair()
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.fileno())
    try:
        token = StopToken()
        with SignalGuard(token):
            assert signal.getsignal(signal.SIGINT) is not before[signal.SIGINT]
            send(signal.SIGTERM)
            assert token.wait(5)
        assert {n: signal.getsignal(n) for n in before} == before
        reader.settimeout(5)
        assert reader.recv(10) == bytes([signal.SIGTERM])
        assert signal.set_wakeup_fd(-1) == writer.fileno()
    finally:
        signal.set_wakeup_fd(-1)
        reader.close()
        writer.close()


def _end_by_sigterm(pipe):
    pipe.send("ready")
    time.sleep(30)


def test_a_forked_process_hears_its_own_signals_and_the_parent_does_not():
    token = StopToken()
    with SignalGuard(token):
        reader, writer = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(target=_end_by_sigterm, args=[writer])
        process.start()
        assert reader.recv() == "ready"
        os.kill(process.pid, signal.SIGTERM)
        process.join(10)
        assert process.exitcode == -signal.SIGTERM
        assert not token.wait(0.1)


def test_it_hears_signals_in_a_process_with_more_than_1024_open_files():
    code = (
        "import os, resource, signal\n"
        "from tensorpack.train.signals import SignalGuard\n"
        "from tensorpack.utils.stopping import StopToken\n"
        "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))\n"
        "files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1024)]\n"
        "token = StopToken()\n"
        "with SignalGuard(token):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    assert token.wait(10)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_hangup_ends_the_run_unless_it_is_ignored():
    outer = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        token = StopToken()
        with SignalGuard(token) as guard:
            guard.in_loop = False
            send(signal.SIGHUP)
            assert not token.wait(0.1)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with SignalGuard(token) as guard:
            guard.in_loop = False
            send(signal.SIGHUP)
            assert token.wait(5) and token.reason == Interrupted(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, outer)


def test_another_thread_than_the_main_one_is_warned_that_it_hears_no_signals(capsys):
    def guarded():
        with SignalGuard(StopToken()):
            pass

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()
    assert "WRN Signals are heard in the main thread only: SIGTERM" in capsys.readouterr().out
    guarded()
    assert capsys.readouterr().out == ""
