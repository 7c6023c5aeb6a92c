"""Which flow gives the next datapoint is drawn as often as it should be, and nothing is lost."""

import collections
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.dataflow import (
    DataFromList,
    MapData,
    RepeatedData,
    UnknownLength,
)
from tensorpack.dataflow.join import RandomChooseData, RandomMixData
from tensorpack.utils import fix_rng_seed
from tests.contracts.dataflow import contract_of
from tests.dataflow.flows import check_resumes, numbers, shuffled
from tests.dataflow.process_functions import odd


def always(value):
    return RepeatedData(DataFromList([[value]]), -1)


def chosen():
    rare = RandomChooseData([always("a"), always("b")])
    return RandomChooseData([(rare, 0.1), (RepeatedData(shuffled(4), -1), 0.9)])


TestRandomChooseData = contract_of(chosen, has_len=False, deterministic=False)
TestRandomChooseDataOfTheOneThatIsLikely = contract_of(
    lambda: RandomChooseData([(numbers(2), 0), (numbers(6), 1), (numbers(0), 0)]),
    length=6,
    has_len=False,
)
TestRandomMixData = contract_of(
    lambda: RandomMixData([shuffled(4), numbers(0), shuffled(5)]), length=9, deterministic=False
)


@pytest.mark.parametrize("kind", [RandomChooseData, RandomMixData])
@settings(max_examples=60)
@given(st.integers(0, 2**20), st.integers(0, 30), st.lists(st.integers(0, 9), min_size=1))
def test_it_resumes_from_anywhere(kind, seed, count, counts):
    fix_rng_seed(seed)
    check_resumes(lambda: kind([shuffled(length) for length in counts]), count)


@given(st.integers(0, 2**20), st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_choosing_ends_with_the_first_flow_that_is_drawn_in_vain(seed, counts):
    fix_rng_seed(seed)
    flows = [numbers(count, 10 * i) for i, count in enumerate(counts)]
    found = [datapoint for (datapoint,) in RandomChooseData(flows)]
    parts = [[number for number in found if number // 10 == i] for i in range(len(counts))]
    assert all(part == [10 * i + j for j in range(len(part))] for i, part in enumerate(parts))
    assert any(len(part) == count for part, count in zip(parts, counts))


def test_flows_are_drawn_by_their_probabilities():
    fix_rng_seed(0)
    names = ["never", "a", "b", "c", "neither"]
    flow = RandomChooseData(list(zip(map(always, names), [0, 0.5, 0.2, 0.3, 0.0])))
    drawn = itertools.islice(flow, 3000)
    found = collections.Counter(name for (name,) in drawn)
    assert set(found) == {"a", "b", "c"}
    assert abs(found["a"] - 1500) < 110
    assert abs(found["b"] - 600) < 90
    equally = RandomChooseData([always(name) for name in names])
    found = collections.Counter(name for (name,) in itertools.islice(equally, 3000))
    assert all(abs(found[name] - 600) < 90 for name in names)


@pytest.mark.parametrize("probabilities", [[0.1] * 10, [0.3333333] * 3, [0.5, 0.5 + 9e-7], [0, 1]])
def test_probabilities_add_up_but_for_rounding(probabilities):
    flow = RandomChooseData([[always(i), p] for i, p in enumerate(probabilities)])
    assert len(list(itertools.islice(flow, 20))) == 20


@pytest.mark.parametrize("wrong", [[0.5, 0.5 + 2e-6], [0.5, 0.4], [1.5, -0.5], [float("nan"), 1]])
def test_what_are_not_probabilities(wrong):
    with pytest.raises(ValueError, match="RandomChooseData needs probabilities .* together"):
        RandomChooseData([(always(i), p) for i, p in enumerate(wrong)])


@given(st.integers(0, 2**20), st.lists(st.integers(0, 6), min_size=1, max_size=4))
def test_mixing_yields_every_datapoint_once_and_in_its_order(seed, counts):
    fix_rng_seed(seed)
    flow = RandomMixData([numbers(count, 10 * i) for i, count in enumerate(counts)])
    for _ in range(2):
        found = [datapoint for (datapoint,) in flow]
        assert len(found) == len(flow) == sum(counts)
        for i, count in enumerate(counts):
            part = [number for number in found if number // 10 == i]
            assert part == list(range(10 * i, 10 * i + count))


def test_every_order_is_equally_likely():
    fix_rng_seed(0)
    flow = RandomMixData([DataFromList(["a", "a"]), DataFromList(["b", "b", "b"])])
    found = collections.Counter("".join(flow) for _ in range(2000))
    assert len(found) == 10
    assert all(abs(count - 200) < 60 for count in found.values())


def test_mixing_needs_lengths_that_are_true():
    message = "flow 1 .*, a MapData, .* length of 6, but 3 of them are missing"
    with pytest.raises(RuntimeError, match=message):
        list(RandomMixData([numbers(4), MapData(numbers(6), odd), numbers(2)]))
    with pytest.raises(UnknownLength, match="RepeatedData has no length"):
        list(RandomMixData([numbers(1), always(0)]))
