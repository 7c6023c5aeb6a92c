"""Functions get a datapoint that they may change, and None drops it."""

import numpy as np
import pytest

from tensorpack.dataflow import (
    FilterData,
    MapData,
    MapDataComponent,
    MultiProcessMapAndBatchData,
    MultiProcessMapData,
    MultiThreadMapData,
    RandomMapData,
    SelectComponent,
)
from tensorpack.utils import logger
from tensorpack.utils.rng import fix_rng_seed
from tests.contracts.dataflow import contract_of
from tests.dataflow.flows import flow_of, numbers, shuffled
from tests.dataflow.process_functions import Unsized, odd


def swapped(datapoint):
    return datapoint[::-1]


def negative(component):
    return -component


TestMapData = contract_of(lambda: MapData(flow_of([[1, 2], [3, 4], [5, 6]]), swapped), length=3)
TestFilter = contract_of(
    lambda: MapData(Unsized(shuffled(9)), odd), length=4, has_len=False, deterministic=False
)
TestFilterData = contract_of(lambda: FilterData(flow_of([[1, 2], [3, 4]]), bool, 1), length=2)
TestMapDataComponent = contract_of(
    lambda: MapDataComponent(flow_of([[1, 2], [3, 4], [5, 6]]), negative, 1), length=3
)
TestSelectComponent = contract_of(
    lambda: SelectComponent(flow_of([[1, 2], [3, 4], [5, 6]]), [1, 1, 0]), length=3
)


def test_map_drops_none_and_nothing_else():
    flow = MapData(flow_of([[0], [1], [2]]), lambda dp: None if dp == [1] else dp[:0])
    assert list(flow) == [[], []]
    assert len(flow) == 3  # that of the wrapped flow


def forgets_to_return(datapoint):
    datapoint[0] += 1


def test_a_pass_of_which_nothing_is_left_is_warned_of(monkeypatch):
    warnings = []
    monkeypatch.setattr(logger, "warning", warnings.append)
    flows = [
        MapData(flow_of([[0], [1]]), forgets_to_return),
        MultiThreadMapData(flow_of([[0], [1]]), 2, forgets_to_return),
        MultiProcessMapData(flow_of([[0], [1]]), 1, forgets_to_return),
        MultiProcessMapData(flow_of([[0], [1]]), 1, forgets_to_return, strict=True),
        MultiProcessMapAndBatchData(
            flow_of([[0], [1], [2]]), 1, forgets_to_return, 2, remainder=True
        ),
    ]
    for flow in flows:
        assert list(flow) == []
        assert warnings.pop().startswith(
            f"{type(flow).__name__} has dropped every datapoint of a pass."
        )
        flow.close()
    assert list(MapData(flow_of([]), forgets_to_return)) == []
    list(MapData(flow_of([[0], [1]]), lambda dp: dp[0] or None))
    flow = MultiProcessMapAndBatchData(flow_of([[0], [0], [1]]), 1, odd, 2, remainder=True)
    assert [batch.tolist() for (batch,) in flow] == [[1]]
    flow.close()
    assert warnings == []


@pytest.mark.parametrize("datapoint", [[1, 2], {0: 1, 1: 2}])
def test_map_gets_a_copy_of_the_datapoint(datapoint):
    def spoil(dp):
        dp[0] = "spoiled"
        return dp

    (result,) = MapData(flow_of([datapoint]), spoil)
    assert result[0] == "spoiled"
    assert datapoint[0] == 1


@pytest.mark.parametrize(
    "datapoint, index, expected",
    [
        ([1, 2], 0, [-1, 2]),
        ([1, 2], -1, [1, -2]),
        ((1, 2), 1, [1, -2]),
        ({(0, 1): 1, "b": 2}, (0, 1), {(0, 1): -1, "b": 2}),
        ({"a": 1, "b": 2}, "b", {"a": 1, "b": -2}),
    ],
)
def test_component_is_replaced_in_a_copy(datapoint, index, expected):
    before = type(datapoint)(datapoint)
    (result,) = MapDataComponent(flow_of([datapoint]), negative, index)
    assert result == expected
    assert type(result) is type(expected)
    assert datapoint == before


def test_component_none_drops_the_datapoint():
    flow = MapDataComponent(flow_of([[0, "a"], [1, "b"]]), lambda n: n or None)
    assert list(flow) == [[1, "b"]]


def test_filter_keeps_what_the_predicate_is_true_of():
    large = {"x": np.arange(3)}
    datapoints = [{"x": np.arange(2)}, large, {"x": np.arange(1)}]
    (kept,) = FilterData(flow_of(datapoints), lambda x: len(x) > 2, "x")
    assert kept is large
    pairs = flow_of([(1, 2), (2, 1), (3, 3)])
    assert list(FilterData(pairs, lambda pair: pair[0] > pair[1])) == [(2, 1)]


def test_select_by_position_and_by_key():
    assert list(SelectComponent(flow_of(["abc", "def"]), [2, 0])) == [["c", "a"], ["f", "d"]]
    assert list(SelectComponent(flow_of([{"x": 1, "y": 2}]), ["y"])) == [[2]]


def test_error_of_the_function_is_left_alone():
    def broken(component):
        raise IndexError("from the function")

    with pytest.raises(IndexError) as caught:
        list(MapDataComponent(flow_of([[1]]), broken))
    assert str(caught.value) == "from the function"  # what it was about is a note


def test_what_is_no_function():
    with pytest.raises(TypeError, match="MapData applies a function, but got int"):
        MapData(flow_of([[1]]), 3)


@pytest.mark.parametrize(
    "datapoint, index, error, message",
    [
        ([1, 2], 5, IndexError, r"component 5, which \[1, 2\] does not have \(list index"),
        ({"a": 1}, "z", KeyError, "component 'z', which {'a': 1} does not have"),
        ([1, 2], [0], TypeError, r"component \[0\], which \[1, 2\] does not have \(list indices"),
        (3, 0, TypeError, "component 0, which 3 does not have .* is a list, or a dict"),
    ],
)
def test_a_component_that_is_not_there(datapoint, index, error, message):
    for flow in (
        MapDataComponent(flow_of([datapoint]), negative, index),
        SelectComponent(flow_of([datapoint]), [index]),
        FilterData(flow_of([datapoint]), bool, index),
    ):
        with pytest.raises(error, match=f"{type(flow).__name__} takes {message}"):
            list(flow)


def test_stop_iteration_of_the_function_does_not_end_the_pass():
    with pytest.raises(RuntimeError, match="raised StopIteration.*Return None to drop"):
        list(MapData(flow_of([[0], [1]]), lambda dp: next(iter([]))))


pytestmark = pytest.mark.usefixtures("own_streams")


def noisy(datapoint, rng):
    return [datapoint[0], rng.randn(), rng.randint(10), rng.rand(2).tolist()]


def some(datapoint, rng):
    return None if datapoint[0] == 3 else noisy(datapoint, rng)


def greedy_at_two(datapoint, rng):
    return [2] if datapoint[0] == 2 and len(rng.rand(99)) else noisy(datapoint, rng)


def seeded(flow):
    fix_rng_seed(1)
    flow.reset_state()
    return flow


TestRandomMapData = contract_of(
    lambda: RandomMapData(numbers(5), noisy), length=5, deterministic=False
)
TestRandomMapThatDrops = contract_of(
    lambda: RandomMapData(Unsized(numbers(9)), some), length=8, has_len=False, deterministic=False
)


def test_draws_depend_on_seed_pass_and_position():
    flow = seeded(RandomMapData(numbers(8), noisy))
    first, second = list(flow), list(flow)
    assert len({dp[1] for dp in first + second}) == 16
    assert list(seeded(RandomMapData(numbers(8), noisy))) == first
    # what one datapoint draws changes no other
    assert list(seeded(RandomMapData(numbers(8), greedy_at_two))) == [*first[:2], [2], *first[3:]]


def test_what_it_gets_is_its_own_and_errors_name_the_datapoint():
    datapoint = [np.arange(3)]
    (result,) = RandomMapData(flow_of([datapoint]), lambda dp, rng: [dp.pop()])
    assert result[0] is datapoint[0]
    with pytest.raises(ZeroDivisionError) as caught:
        list(RandomMapData(numbers(8), lambda dp, rng: 1 / (dp[0] - 2) and dp))
    assert "RandomMapData failed on datapoint 2" in repr(
        getattr(caught.value, "__notes__", caught.value.__cause__)
    )
    with pytest.raises(TypeError, match="RandomMapData applies a function, but got int"):
        RandomMapData(numbers(8), 3)
