"""The stop token: who comes first counts, and everybody is told."""

import threading

import pytest

from tensorpack.utils.stopping import Failed, Finished, Interrupted, StopRequested, StopToken


def test_first_reason_counts_and_the_others_are_kept():
    token = StopToken()
    assert not token.requested and token.reason is None
    assert token.request(Interrupted(2))
    assert not token.request(Finished())
    assert token.reason == Interrupted(2)
    assert token.late_reasons == [Finished()]


def test_wakers_run_once_in_order_though_one_fails_and_late_ones_at_once(capfd):
    token, tape = StopToken(), []
    token.on_request(lambda: tape.append("a"))
    token.on_request(lambda: 1 / 0)
    token.on_request(lambda: tape.append("b"))
    token.request(Finished())
    token.request(Finished())
    assert tape == ["a", "b"]
    assert "ZeroDivisionError" in capfd.readouterr().out
    token.on_request(lambda: tape.append("late"))
    assert tape == ["a", "b", "late"]


def test_a_waker_can_be_taken_back():
    token, tape = StopToken(), []
    forget = token.on_request(lambda: tape.append("a"))
    forget()
    forget()
    token.request(Finished())
    assert tape == []


def test_raise_if_requested_says_why():
    token = StopToken()
    token.raise_if_requested()
    error = ValueError("broken")
    token.request(Failed(error, "feeder"))
    with pytest.raises(StopRequested) as caught:
        token.raise_if_requested()
    assert caught.value.args == (Failed(error, "feeder"),)


def test_wait_wakes_up_in_another_thread():
    token, woken = StopToken(), []
    thread = threading.Thread(target=lambda: woken.append(token.wait(10)))
    thread.start()
    token.request(Finished())
    thread.join(5)
    assert woken == [True]
    assert not StopToken().wait(0.001)
