"""A function draws from a stream that the seed, the pass and the position decide."""

import numpy as np
import pytest

from tensorpack.dataflow import DataFromList, RandomMapData
from tensorpack.utils.rng import fix_rng_seed
from tests.contracts.dataflow import contract_of
from tests.dataflow.flows import flow_of
from tests.dataflow.process_functions import Unsized

pytestmark = pytest.mark.usefixtures("own_streams")


def noisy(datapoint, rng):
    return [datapoint[0], rng.randn(), rng.randint(10), rng.rand(2).tolist()]


def some(datapoint, rng):
    return None if datapoint[0] == 3 else noisy(datapoint, rng)


def greedy_at_two(datapoint, rng):
    return [2] if datapoint[0] == 2 and len(rng.rand(99)) else noisy(datapoint, rng)


def numbers(count=8):
    return DataFromList([[each] for each in range(count)], shuffle=False)


def seeded(flow):
    fix_rng_seed(1)
    flow.reset_state()
    return flow


TestRandomMapData = contract_of(
    lambda: RandomMapData(numbers(5), noisy), length=5, deterministic=False
)
TestDropping = contract_of(
    lambda: RandomMapData(Unsized(numbers(9)), some), length=8, has_len=False, deterministic=False
)


def test_draws_depend_on_seed_pass_and_position():
    flow = seeded(RandomMapData(numbers(), noisy))
    first, second = list(flow), list(flow)
    assert len({each[1] for each in first + second}) == 16
    assert list(seeded(RandomMapData(numbers(), noisy))) == first
    # what one datapoint draws changes no other
    assert list(seeded(RandomMapData(numbers(), greedy_at_two))) == [*first[:2], [2], *first[3:]]


def test_another_flow_continues_exactly():
    flow = seeded(RandomMapData(numbers(), some))
    datapoints = iter(flow)
    for _ in range(4):
        next(datapoints)
    state, rest, following = flow.state_dict(), list(datapoints), list(flow)
    other = RandomMapData(numbers(), some)
    other.reset_state()
    other.load_state_dict(state)
    assert list(other) == rest and list(other) == following


def test_what_it_gets_is_its_own_and_errors_name_the_datapoint():
    datapoint = [np.arange(3)]
    (result,) = RandomMapData(flow_of([datapoint]), lambda dp, rng: [dp.pop()])
    assert result[0] is datapoint[0]
    with pytest.raises(ZeroDivisionError) as caught:
        list(RandomMapData(numbers(), lambda dp, rng: 1 / (dp[0] - 2) and dp))
    assert "RandomMapData failed on datapoint 2" in repr(
        getattr(caught.value, "__notes__", caught.value.__cause__)
    )
    with pytest.raises(TypeError, match="RandomMapData applies a function, but got int"):
        RandomMapData(numbers(), 3)
