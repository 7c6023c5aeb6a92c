"""The pacer: which side waits for the other, what a pause sees, and that closing wakes both."""

import threading
import time

import pytest

from tensorpack.RL import Pacer


@pytest.fixture
def start():
    """Starts functions in threads, joined after the test; returns thread and list of results."""
    threads = []

    def run(function):
        results = []
        threads.append(threading.Thread(target=lambda: results.append(function())))
        threads[-1].start()
        return threads[-1], results

    yield run
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


class Piece:
    """A piece of work that a thread has entered and leaves when told."""

    def __init__(self, pacer, start):
        self._pacer, self._inside, self.leave = pacer, threading.Event(), threading.Event()
        self.thread, self.result = start(self._work)
        self._inside.wait(5)

    def _work(self):
        with self._pacer:
            self._inside.set()
            self.leave.wait(5)
        return "piece over"


def test_five_grants_may_be_open_and_a_sixth_waits_for_room(start):
    pacer = Pacer(grant=4)
    assert all(pacer.grant() for _ in range(5))
    thread, granted = start(pacer.grant)
    pacer.spend(3)
    time.sleep(0.05)
    assert granted == []
    pacer.spend(1)
    thread.join(5)
    assert granted == [True]


@pytest.mark.parametrize("allow", [Pacer.grant, lambda pacer: setattr(pacer, "open", 2)])
def test_playing_waits_for_a_grant(allow, start):
    pacer = Pacer(grant=1)
    thread, waited = start(pacer.wait)
    time.sleep(0.05)
    assert waited == []
    allow(pacer)
    thread.join(5)
    assert waited == [True]


@pytest.mark.timed
@pytest.mark.parametrize("side", ["grant", "wait"])
def test_closing_wakes_both_sides(side, start):
    pacer = Pacer(grant=1, max_grants=1)
    if side == "grant":
        pacer.grant()
    thread, results = start(getattr(pacer, side))
    time.sleep(0.05)
    begin = time.monotonic()
    pacer.close()
    thread.join(5)
    assert results == [False]
    assert time.monotonic() - begin < 0.5
    assert not pacer.grant() and not pacer.wait()


def test_pieces_run_at_the_same_time_and_a_pause_waits_for_them(start):
    pacer = Pacer(1)
    piece = Piece(pacer, start)
    with pacer:
        assert piece.thread.is_alive()

    def pause():
        with pacer.pause() as calm:
            return calm, list(piece.result)

    thread, paused = start(pause)
    time.sleep(0.05)
    assert paused == []
    piece.leave.set()
    thread.join(5)
    assert paused[0][0] is True


@pytest.mark.timed
def test_a_pause_gets_its_turn_among_threads_that_never_rest(start):
    pacer, ended = Pacer(1), threading.Event()

    def work():
        while not ended.is_set():
            with pacer:
                time.sleep(0.001)

    for _ in range(3):
        start(work)
    begin = time.monotonic()
    for _ in range(10):
        with pacer.pause(5) as calm:
            assert calm
    ended.set()
    assert time.monotonic() - begin < 2


def test_a_pause_that_took_too_long_says_so_and_holds_nothing_afterwards(start):
    pacer = Pacer(1)
    piece = Piece(pacer, start)
    with pacer.pause(0.01) as calm:
        assert not calm
    with pytest.raises(OSError), pacer:  # a piece that fails is over, too
        raise OSError
    piece.leave.set()
    piece.thread.join(5)
    with pacer.pause(0) as calm:
        assert calm
