"""Signals escalate, and a step that does not come back is unblocked."""

import os
import signal
import threading
import time

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.train.interrupt import RunGuard, TrainingInterrupted
from tensorpack.utils.stopping import Failed, Interrupted, StopRequested, StopToken


def send(signum=signal.SIGINT):
    os.kill(os.getpid(), signum)


def wait_until(condition, seconds=5):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_requests_the_stop(signum):
    token = StopToken()
    with RunGuard(token) as guard:
        guard.left_loop()
        send(signum)
        assert token.wait(5)
    assert token.reason == Interrupted(signum)
    assert not guard.skip_optional


def test_second_skips_what_is_optional_and_third_ends_the_process(capfd):
    token, codes = StopToken(), []
    with RunGuard(token, hard_exit=codes.append) as guard:
        guard.left_loop()
        send()
        assert token.wait(5)
        send()
        wait_until(lambda: guard.skip_optional)
        assert codes == []
        send()
        wait_until(lambda: codes)
    assert codes[0] == 130
    assert "third time" in capfd.readouterr().out


def test_grace_runs_out():
    token, codes = StopToken(), []
    with RunGuard(token, grace=0.05, hard_exit=codes.append) as guard:
        guard.left_loop()
        send(signal.SIGTERM)
        wait_until(lambda: codes)
    assert codes[0] == 143


def test_a_step_that_hangs_is_unblocked_on_another_thread():
    token, threads = StopToken(), []
    with RunGuard(token) as guard:
        guard.unblock = lambda: threads.append(threading.current_thread())
        token.request(Failed(ValueError(), "feeder"))  # no signal at all
        wait_until(lambda: threads)
    assert len(threads) == 1 and threads[0] is not threading.current_thread()


def test_a_signal_in_a_long_step_is_answered(capfd):
    token, calls = StopToken(), []
    with RunGuard(token) as guard:
        guard.unblock = lambda: calls.append(1)
        send()
        wait_until(lambda: calls)
    assert "Stopping when the running step or callback is over." in capfd.readouterr().out


def test_nothing_is_unblocked_once_the_loop_is_left():
    token, calls = StopToken(), []
    with RunGuard(token) as guard:
        guard.unblock = lambda: calls.append(1)
        guard.left_loop()
        token.request(Interrupted(2))
        time.sleep(0.7)  # longer than a step is waited for
    assert calls == []


def test_exception_tells_the_exit_code_and_is_a_keyboard_interrupt():
    with pytest.raises(KeyboardInterrupt) as caught:
        raise TrainingInterrupted(signal.SIGTERM)
    assert isinstance(caught.value, SystemExit)
    assert (caught.value.code, caught.value.signum) == (143, 15)


def test_a_signal_raises_out_of_what_cannot_look_at_the_token_and_only_there():
    token = StopToken()
    with RunGuard(token) as guard:
        guard.left_loop()
        with pytest.raises(StopRequested):
            with guard.raising():
                send()
                time.sleep(5)
        assert token.reason == Interrupted(signal.SIGINT)
        send()  # the setup is over: nothing is raised any more
        time.sleep(0.01)


def test_only_the_first_signal_raises():
    token = StopToken()
    with RunGuard(token) as guard:
        guard.left_loop()
        with guard.raising():
            with pytest.raises(StopRequested):
                send()
            send()


def test_a_signal_does_not_raise_inside_a_session_run():
    def interrupt():
        send()
        token.wait(5)
        return 7.0

    token, seven = StopToken(), tf.py_func(interrupt, [], tf.float64)
    with tf.Session() as sess, RunGuard(token) as guard:
        guard.left_loop()
        with guard.raising():
            assert sess.run(seven) == 7.0
    assert token.reason == Interrupted(signal.SIGINT)


def test_hangup_ends_the_run_unless_it_is_ignored():
    outer = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        token = StopToken()
        with RunGuard(token) as guard:
            guard.left_loop()
            send(signal.SIGHUP)
            assert not token.wait(0.1)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with RunGuard(token) as guard:
            guard.left_loop()
            send(signal.SIGHUP)
            assert token.wait(5) and token.reason == Interrupted(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, outer)


def test_a_signal_that_another_thread_was_given_interrupts_the_main_thread():
    done = threading.Event()

    def idle():
        time.sleep(0.2)  # until the main thread sleeps, too
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        done.wait(10)

    thread = threading.Thread(target=idle)
    start = time.monotonic()
    with RunGuard(StopToken()) as guard:
        thread.start()
        with pytest.raises(StopRequested), guard.raising():
            time.sleep(10)
        time.sleep(0.1)
        assert not guard.skip_optional
    done.set()
    thread.join()
    assert time.monotonic() - start < 5
