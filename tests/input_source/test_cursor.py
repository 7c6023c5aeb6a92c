import itertools
from types import SimpleNamespace

import pytest

from tensorpack.dataflow import (
    BatchData,
    CacheData,
    DataFlow,
    DataFromList,
    MapData,
    RepeatedData,
)
from tensorpack.input_source import DataFlowEmpty
from tensorpack.input_source.cursor import END_OF_PASS, FlowCursor
from tensorpack.tfutils.callback import Callback
from tensorpack.utils.stopping import Interrupted, StopRequested, StopToken
from tests.dataflow.flows import numbers

from .run_source import FlowOf


def datapoints(flow, infinite=True):
    return FlowCursor(flow, infinite).begin()


@pytest.mark.parametrize("infinite", [True, False])
def test_an_empty_pass_is_an_error(infinite):
    with pytest.raises(DataFlowEmpty, match="DataFromList ended without a single datapoint"):
        next(datapoints(DataFromList([]), infinite))


def trainer_of(strictly=True, token=None):
    return SimpleNamespace(resume_strictly=strictly, stop_token=token or StopToken())


def begun_at(position, flow, strictly=False, token=None, infinite=True):
    cursor = FlowCursor(flow, infinite)
    cursor.begin_at(position, trainer_of(strictly, token))
    return cursor


def position(count, flow=None, seeded=True, callback=False):
    return {"count": count, "flow": flow, "seeded": seeded, "callback": callback}


@pytest.mark.parametrize("length", [0, 3])
def test_the_rest_of_a_pass_may_be_empty_but_the_next_one_not(length):
    state = {**numbers(length).state_dict(), "count": length}
    source = begun_at(position(length, state), numbers(length)).begin()
    if length:
        assert [next(source), next(source)] == [[0], [1]]
    else:
        with pytest.raises(DataFlowEmpty):
            next(source)


def test_without_a_state_the_data_is_made_again(logged, capsys):
    flow = FlowOf(lambda number: [[number, i] for i in range(2)])
    assert next(begun_at(position(3), flow, strictly=True).begin()) == [1, 1]
    (message,) = logged
    assert "FlowOf keeps no state: its first 3 datapoints are made again" in message
    assert "3/3" in capsys.readouterr().err


def test_going_through_it_again_can_be_stopped():
    token, closed = StopToken(), []

    def one_pass(number):
        try:
            for i in itertools.count():
                if i == 10:
                    token.request(Interrupted(2))
                yield [i]
        finally:
            closed.append(i)

    cursor = begun_at(position(10**9), FlowOf(one_pass), token=token)
    with pytest.raises(StopRequested):
        cursor.begin()
    assert closed == [10]


class FlowAndCallback(DataFlow, Callback):
    def __iter__(self):
        return ([i] for i in range(3))


@pytest.mark.parametrize("wrap", [lambda ds: ds, lambda ds: MapData(BatchData(ds, 1), list)])
def test_a_flow_that_is_a_callback_keeps_its_own_state(wrap, logged):
    cursor = FlowCursor(wrap(FlowAndCallback()))
    next(cursor.begin())
    assert cursor.position() == position(1, callback=True)
    later = begun_at(cursor.position(), wrap(FlowAndCallback()), strictly=True)
    next(later.begin())
    assert later.count == 2
    assert logged == []
    with pytest.raises(ValueError, match="came from a flow that was a callback as well"):
        begun_at(cursor.position(), numbers(3))


def test_a_state_for_another_flow():
    state = numbers(3).state_dict()
    with pytest.raises(ValueError, match="FlowOf keeps no state.*Make it as in the run"):
        begun_at(position(1, state), FlowOf(lambda number: [[1]])).begin()
    with pytest.raises(ValueError, match="not a state of RepeatedData"):
        begun_at(position(1, state), RepeatedData(numbers(3), -1)).begin()


def test_a_flow_learns_that_a_pass_of_its_length_has_ended():
    read = []
    source = MapData(numbers(3), lambda datapoint: read.append(datapoint) or datapoint)
    passes = FlowCursor(CacheData(source), pass_length=3).begin()
    assert list(itertools.islice(passes, 12))[8:] == [[0], [1], [2], END_OF_PASS]
    assert len(read) == 3


def test_passes_read_by_themselves_are_not_made_again():
    flow = FlowOf(lambda number: [[number]])
    cursor = FlowCursor(flow, pass_length=1)
    cursor.begin_at(position(7, seeded=False), trainer_of())
    assert next(cursor.begin()) == [0]
    assert cursor.position()["count"] == 8
