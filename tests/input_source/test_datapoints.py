import itertools

import pytest

from tensorpack.dataflow import DataFromList
from tensorpack.input_source import DataFlowEmpty
from tensorpack.input_source.datapoints import check_is_dataflow, datapoints

from .running import FlowOf


def test_a_finite_flow_repeats():
    flow = FlowOf(lambda number: [[number, i] for i in range(2)])
    found = list(itertools.islice(datapoints(flow), 5))
    assert found == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 0]]
    assert flow.resets == 0


def test_one_pass():
    assert list(datapoints(DataFromList([[1], [2]], shuffle=False), infinite=False)) == [[1], [2]]


@pytest.mark.parametrize("infinite", [True, False])
def test_an_empty_pass_is_an_error(infinite):
    with pytest.raises(DataFlowEmpty, match="DataFromList ended without a single datapoint"):
        next(datapoints(DataFromList([]), infinite))


def test_a_generator_that_is_used_up_is_an_error():
    once = iter([[1]])
    source = datapoints(FlowOf(lambda number: once))
    assert next(source) == [1]
    with pytest.raises(DataFlowEmpty):
        next(source)


def test_a_pass_that_is_left_is_closed():
    tape = []

    def one_pass(number):
        try:
            yield [1]
            yield [2]
        finally:
            tape.append("closed")

    source = datapoints(FlowOf(one_pass))
    next(source)
    assert tape == []
    source.close()
    assert tape == ["closed"]


def test_only_dataflows():
    with pytest.raises(ValueError, match="takes a DataFlow, got list.*DataFromList"):
        check_is_dataflow([[1]])
