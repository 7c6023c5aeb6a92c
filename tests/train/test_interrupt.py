"""Signals escalate, and a step that does not come back is unblocked."""

import os
import signal
import threading
import time

import pytest

from tensorpack.train.interrupt import RunGuard, TrainingInterrupted
from tensorpack.utils.stopping import Failed, Interrupted, StopToken


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
