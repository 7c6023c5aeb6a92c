"""A buffer is bounded in items and in bytes, and lets go of all who wait when it is over."""

import pytest

from tensorpack.dataflow import DataFlowTerminated
from tensorpack.dataflow._threads.workers import Buffer
from tests.dataflow._threads.waiting import SHORT, call_in_thread
from tests.dataflow.helpers import LONG


def test_buffer_is_bounded_in_items():
    buffer = Buffer("Flow", 2, 1000)
    assert buffer.reserve() and buffer.reserve()
    done, result = call_in_thread(buffer.reserve)
    assert not done.wait(SHORT)
    buffer.put("first", 1)
    assert not done.wait(SHORT)
    assert buffer.get() == ("first", 1)
    assert not done.wait(SHORT)
    buffer.release(1)
    assert done.wait(LONG) and result == [True]


def test_buffer_is_bounded_in_bytes():
    buffer = Buffer("Flow", 5, 10)
    assert buffer.reserve() and buffer.reserve() and buffer.reserve()
    buffer.put("first", 9)
    buffer.put("second", 100)
    done, result = call_in_thread(buffer.reserve)
    assert not done.wait(SHORT)
    buffer.release(9)
    assert not done.wait(SHORT)
    buffer.put("third", 9)
    buffer.release(100)
    assert done.wait(LONG) and result == [True]
    buffer.release(9)
    assert buffer.reserve() and buffer.reserve() and buffer.reserve() and buffer.reserve()
    done, result = call_in_thread(buffer.reserve)
    assert not done.wait(SHORT)
    buffer.close()
    assert done.wait(LONG) and result == [False]


def test_several_wait_for_bytes_and_all_go_on():
    buffer = Buffer("Flow", 3, 10)
    assert buffer.reserve()
    buffer.put("large", 10)
    waiting = [call_in_thread(buffer.reserve) for _ in range(2)]
    assert not any(done.wait(SHORT) for done, _ in waiting)
    buffer.release(10)
    while not all(done.is_set() for done, _ in waiting):
        buffer.put("small", 1)  # by the one who went on, for he took the room of the other
        buffer.release(1)
    assert [result for _, result in waiting] == [[True], [True]]


def test_closing_a_buffer_ends_all_waits():
    buffer = Buffer("Flow", 1, 10)
    getters = [call_in_thread(buffer.get) for _ in range(3)]
    assert buffer.reserve()
    reservers = [call_in_thread(buffer.reserve) for _ in range(3)]
    buffer.close()
    assert all(done.wait(LONG) for done, _ in getters + reservers)
    assert [result for _, result in reservers] == [[False]] * 3
    assert all("Flow was closed" in str(result[0]) for _, result in getters)
    assert not buffer.reserve()
    with pytest.raises(DataFlowTerminated, match="Flow was closed or reset"):
        buffer.get()


def test_a_buffer_that_failed_raises_the_first_error():
    buffer = Buffer("Flow", 3, 10)
    buffer.put("good", 1)
    error = ZeroDivisionError("first")
    buffer.fail(error)
    buffer.fail(ZeroDivisionError("second"))
    assert buffer.failed and not buffer.reserve()
    for call in buffer.get, buffer.check, buffer.get:
        with pytest.raises(ZeroDivisionError) as raised:
            call()
        assert raised.value is error


def test_an_error_after_the_close_is_of_no_interest():
    buffer = Buffer("Flow", 3, 10)
    buffer.close()
    buffer.fail(ZeroDivisionError("late"))
    assert not buffer.failed
    with pytest.raises(DataFlowTerminated):
        buffer.get()
