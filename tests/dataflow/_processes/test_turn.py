"""A lock that is held by one at a time, and by nobody who is dead."""

import multiprocessing
import os
import signal
import threading
import time

import pytest

from tensorpack.dataflow._processes.turn import Turn

LONG = 60  # seconds; waited for in full only if the code is wrong


@pytest.fixture
def turn():
    made = Turn()
    yield made
    made.close()


def soon():
    return time.monotonic() + 0.05


def late():
    return time.monotonic() + LONG


def try_it(turn, connection):
    with turn.taken(soon()) as has_it:
        connection.send((has_it, turn.broken))


def die_with_it(turn, at_work):
    with turn.taken(late()) as has_it:
        if at_work:
            turn.begins()
        if has_it:
            os.kill(os.getpid(), signal.SIGKILL)


def run(method, target, *args):
    process = multiprocessing.get_context(method).Process(target=target, args=args)
    process.start()
    process.join(LONG)
    return process.exitcode


def elsewhere(turn, method="fork"):
    """Whether another process has the turn when it tries, and whether it is broken."""
    here, there = multiprocessing.get_context(method).Pipe(duplex=False)
    assert run(method, try_it, turn, there) == 0
    result = here.recv()
    here.close()
    there.close()
    return result


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_one_process_at_a_time_has_it(turn, method):
    with turn.taken(soon()) as has_it:
        assert has_it
        assert elsewhere(turn, method) == (False, False)
    assert elsewhere(turn, method) == (True, False)


def test_one_thread_at_a_time_has_it(turn):
    found = []

    def look():
        with turn.taken(soon()) as has_it:
            found.append(has_it)

    def in_a_thread():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join(LONG)

    with turn.taken(soon()):
        in_a_thread()
    in_a_thread()
    assert found == [False, True]


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("at_work", [False, True])
def test_it_is_free_when_its_holder_was_killed(turn, method, at_work):
    assert run(method, die_with_it, turn, at_work) == -signal.SIGKILL
    with turn.taken(late()) as has_it:
        assert has_it and turn.broken == at_work


def test_it_is_free_after_an_error(turn):
    with pytest.raises(KeyError):
        with turn.taken(late()):
            raise KeyError
    assert elsewhere(turn) == (True, False)
