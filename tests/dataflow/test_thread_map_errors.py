"""What goes wrong in a thread is raised in the consumer, once and in its place."""

import sys
import threading
import traceback

import pytest

from tensorpack.dataflow import DataFromGenerator
from tensorpack.dataflow.threads import MultiThreadMapData
from tests.dataflow.flows import numbers
from tests.dataflow.thread_functions import both_orders
from tests.processes import LONG


@both_orders
@pytest.mark.parametrize("where", ["function", "flow"])
@pytest.mark.parametrize("num_thread", [1, 3])
@pytest.mark.parametrize("position", [0, 2, 4])
def test_an_error_is_raised_with_its_traceback(strict, where, num_thread, position):
    error = ZeroDivisionError(f"at {position}")

    def this_breaks(number):
        if number == position:
            raise error

    def source():
        for i in range(5):
            if where == "flow":
                this_breaks(i)
            yield [i]

    def func(datapoint):
        if where == "function":
            this_breaks(datapoint[0])
        return datapoint

    before = threading.enumerate()
    flow = MultiThreadMapData(DataFromGenerator(source), num_thread, func, strict=strict)
    datapoints = []
    with pytest.raises(ZeroDivisionError) as raised:
        for datapoint in flow:
            datapoints.append(datapoint)
    assert threading.enumerate() == before
    assert raised.value is error
    frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert frames[-1] == "this_breaks" and frames[0] == this_function()
    if strict:
        assert datapoints == [[i] for i in range(position)]
    else:
        assert [position] not in datapoints and len(datapoints) <= 4


def this_function():
    return sys._getframe(1).f_code.co_name


@pytest.mark.parametrize("first_fails", [True, False])
def test_a_strict_error_waits_for_what_comes_before_it(first_fails):
    raised = threading.Event()

    def func(datapoint):
        if datapoint == [1]:
            raised.set()
        else:
            assert raised.wait(LONG)
        if datapoint == [1] or first_fails:
            raise ZeroDivisionError(f"of {datapoint[0]}")
        return datapoint

    datapoints = iter(MultiThreadMapData(numbers(9), 2, func, strict=True))
    if not first_fails:
        assert next(datapoints) == [0]
    with pytest.raises(ZeroDivisionError, match="of 0" if first_fails else "of 1"):
        next(datapoints)
    assert list(datapoints) == []


@both_orders
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt("k"), GeneratorExit("g")])
def test_no_exception_vanishes(strict, error):
    def func(datapoint):
        raise error

    with pytest.raises(type(error)) as raised:
        list(MultiThreadMapData(numbers(3), 2, func, strict=strict))
    assert raised.value is error


@both_orders
def test_after_an_error_a_new_pass_begins(strict):
    failures = [ZeroDivisionError("once")]

    def func(datapoint):
        if failures:
            raise failures.pop()
        return datapoint

    flow = MultiThreadMapData(numbers(5), 1, func, strict=strict)
    with pytest.raises(ZeroDivisionError, match="once"):
        list(flow)
    assert list(flow) == list(numbers(5))
