"""The gate: workers work side by side; a pause sees whole pieces only, and gets its turn."""

import threading
import time

import pytest
from gate import Gate


@pytest.fixture
def start():
    """Starts functions in threads, which are joined after the test."""
    threads = []

    def run(function):
        threads.append(threading.Thread(target=function))
        threads[-1].start()
        return threads[-1]

    yield run
    for thread in threads:
        thread.join(5)


def test_pieces_go_on_side_by_side(start):
    gate, both = Gate(), threading.Barrier(2)

    def work():
        with gate.piece():
            both.wait(5)  # broken unless the other one is inside too

    thread = start(work)
    work()
    thread.join(5)
    assert not both.broken


def test_a_pause_waits_for_the_piece_that_is_under_way(start):
    gate, inside, leave, tape = Gate(), threading.Event(), threading.Event(), []

    def work():
        with gate.piece():
            inside.set()
            leave.wait(5)
            tape.append("piece over")

    def pause():
        with gate.pause() as calm:
            tape.append(calm)

    start(work)
    inside.wait(5)
    pausing = start(pause)
    time.sleep(0.05)
    leave.set()
    pausing.join(5)
    assert tape == ["piece over", True]


def test_no_piece_begins_in_a_pause_and_all_go_on_after_it(start):
    gate, tape = Gate(), []

    def work():
        with gate.piece():
            tape.append("piece")

    with gate.pause():
        threads = [start(work) for _ in range(2)]
        time.sleep(0.05)
        assert tape == []
    for thread in threads:
        thread.join(5)
    assert tape == ["piece", "piece"]


@pytest.mark.timed
def test_a_pause_gets_its_turn_among_those_who_never_rest(start):
    gate, ended = Gate(), threading.Event()

    def work():
        while not ended.is_set():
            with gate.piece():
                time.sleep(0.001)

    for _ in range(3):
        start(work)
    begin = time.monotonic()
    for _ in range(10):
        with gate.pause(5) as calm:
            assert calm
    ended.set()
    assert time.monotonic() - begin < 2


def test_a_pause_that_took_too_long_says_so_and_leaves_nothing_closed(start):
    gate, inside, leave = Gate(), threading.Event(), threading.Event()

    def work():
        with gate.piece():
            inside.set()
            leave.wait(5)

    thread = start(work)
    inside.wait(5)
    with gate.pause(0.01) as calm:
        assert not calm
    with gate.piece():
        pass
    leave.set()
    thread.join(5)
    with gate.pause(0) as calm:
        assert calm


def test_a_piece_that_fails_is_over():
    gate = Gate()
    with pytest.raises(OSError), gate.piece():
        raise OSError
    with gate.pause(0) as calm:
        assert calm
