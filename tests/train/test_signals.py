"""Signals escalate, and a step that does not come back is unblocked."""

import os
import signal
import threading
import time

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.train import signals
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


def test_what_blocks_stops_neither_the_counting_nor_the_deadline():
    token, codes, release = StopToken(), [], threading.Event()
    token.on_request(release.wait)  # as a reader of the log does that has stopped reading
    with SignalGuard(token, hard_exit=codes.append) as guard:
        guard.left_loop()
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
        guard.left_loop()
        token.request(Interrupted(2))
        time.sleep(0.7)  # longer than a step is waited for
    assert calls == []


def test_a_signal_interrupts_a_setup_that_does_not_look_at_the_token_and_nothing_later():
    token = StopToken()
    with SignalGuard(token) as guard:
        guard.left_loop()
        with pytest.raises(StopRequested):
            guard.run_setup(lambda: (send(), time.sleep(5)))
        assert token.reason == Interrupted(signal.SIGINT)
        send()  # the setup is over: nothing is raised any more
        time.sleep(0.01)


def test_a_setup_that_ends_soon_is_not_interrupted_in_the_middle(monkeypatch):
    monkeypatch.setattr(signals, "_SETUP_SECONDS", 20)
    done = []
    with SignalGuard(StopToken()) as guard, pytest.raises(StopRequested):
        guard.run_setup(lambda: (send(), time.sleep(0.05), done.append(1)))
    assert done == [1]


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
        guard.left_loop()
        guard.run_setup(setup)
    assert cleaned == [1]


def test_an_error_of_an_interrupted_setup_is_the_interruption(capfd, monkeypatch):
    monkeypatch.setattr(signals, "_SETUP_SECONDS", 20)

    def setup():
        send()
        time.sleep(0.05)
        raise RuntimeError("error_already_set")

    with SignalGuard(StopToken()) as guard, pytest.raises(StopRequested):
        guard.run_setup(setup)
    assert "RuntimeError('error_already_set')" in capfd.readouterr().out
    with SignalGuard(StopToken()) as guard, pytest.raises(ValueError):  # without a signal
        guard.run_setup(lambda: int("one"))


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
        time.sleep(0.7)  # longer than a setup is waited for
        tape.append("end")

    with SignalGuard(StopToken()) as guard, pytest.raises(StopRequested):
        guard.left_loop()
        guard.run_setup(lambda: (call_in_tensorflow(wait), time.sleep(5), tape.append("slept")))
    assert tape == ["begin", "end"]  # and what follows is interrupted


def test_hangup_ends_the_run_unless_it_is_ignored():
    outer = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        token = StopToken()
        with SignalGuard(token) as guard:
            guard.left_loop()
            send(signal.SIGHUP)
            assert not token.wait(0.1)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with SignalGuard(token) as guard:
            guard.left_loop()
            send(signal.SIGHUP)
            assert token.wait(5) and token.reason == Interrupted(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, outer)


def test_any_stop_request_interrupts_what_may_be_interrupted_and_in_time():
    token, tape = StopToken(), []
    with SignalGuard(token) as guard:
        guard.left_loop()
        assert guard.interruptible(lambda: 7) == 7
        token.request(Failed(ValueError(), "worker"))
        guard.interruptible(lambda: (time.sleep(0.1), tape.append("whole")), after=20)
        with pytest.raises(StopRequested):
            guard.interruptible(lambda: time.sleep(10), after=0.3)
    assert tape == ["whole"]


def test_a_signal_that_another_thread_was_given_interrupts_the_main_thread():
    done = threading.Event()

    def idle():
        time.sleep(0.2)  # until the main thread sleeps, too
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        done.wait(10)

    thread = threading.Thread(target=idle)
    start = time.monotonic()
    with SignalGuard(StopToken()) as guard:
        thread.start()
        with pytest.raises(StopRequested):
            guard.run_setup(lambda: time.sleep(10))
        time.sleep(0.1)
        assert not guard.skip_optional
    done.set()
    thread.join()
    assert time.monotonic() - start < 5


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
