"""Flows side by side and one after another; and what holds for every flow made of several."""

import collections
import itertools
import pickle
import queue

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.dataflow import (
    BatchDataByShape,
    DataFlow,
    DataFromGenerator,
    DataFromList,
    DataFromQueue,
    MapData,
    MultiThreadMapData,
    RepeatedData,
    StateNotKept,
    UnknownLength,
)
from tensorpack.dataflow.cache import CacheData
from tensorpack.dataflow.join import ConcatData, JoinData, RandomChooseData, RandomMixData
from tensorpack.dataflow.shuffle import LocallyShuffleData
from tensorpack.utils import fix_rng_seed
from tests.contracts.dataflow import assert_same, contract_of
from tests.dataflow.flows import Foreign, Of2017, check_resumes, doubled, flow_of, numbers, shuffled
from tests.dataflow.process_functions import Unsized, odd

COMBINED = [JoinData, ConcatData, RandomChooseData, RandomMixData]


def of_three_shapes(datapoint):
    return [np.full(datapoint[0] % 3, datapoint[0])]


def drop(datapoint):
    return None


def three():
    return iter([[0], [1], [2]])


class Late(DataFlow):
    """Keeps a state, but begins a pass only with the first datapoint."""

    position = skip = 0

    def __iter__(self):
        first, self.skip = self.skip, 0
        for i in range(first, 5):
            self.position = i + 1
            yield [i]

    def __len__(self):
        return 5

    def state_dict(self):
        return {"position": self.position}

    def load_state_dict(self, state):
        self.position = self.skip = state["position"]


class Calls(Of2017):
    def __init__(self, calls, error=None):
        self.calls = calls
        self.error = error

    def reset_state(self):
        self.calls.append("reset_state")

    def start_processes(self):
        self.calls.append("start_processes")

    def close(self):
        self.calls.append("close")
        if self.error is not None:
            raise self.error


TestJoinData = contract_of(lambda: JoinData([numbers(5), MapData(numbers(7), doubled)]), length=5)
# The longer flows are left in the middle, those before the shortest one further on.
TestJoinDataInRandomOrder = contract_of(
    lambda: JoinData([shuffled(6), shuffled(4), shuffled(9), shuffled(4)]),
    length=4,
    deterministic=False,
)
TestJoinDataWithAnEndlessOne = contract_of(
    lambda: JoinData([RepeatedData(shuffled(3), -1), shuffled(5)]),
    length=5,
    has_len=False,
    deterministic=False,
)
TestConcatData = contract_of(
    lambda: ConcatData([numbers(0), numbers(3), numbers(0), numbers(4), numbers(0)]), length=7
)


def concat_of_one():
    flow = shuffled(4)
    twice = MapData(flow, doubled)
    return ConcatData([twice, RepeatedData(flow, 2), twice])


TestConcatDataOfFlowsMadeFromOne = contract_of(concat_of_one, length=16, deterministic=False)
TestConcatDataThatEndsWithNothing = contract_of(
    lambda: ConcatData(
        [shuffled(4), Unsized(MapData(shuffled(6), odd)), MapData(shuffled(3), drop)]
    ),
    length=7,
    has_len=False,
    deterministic=False,
)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_joined_and_concatenated_like_lists(counts):
    flows = [numbers(count) for count in counts]
    joined, parts = JoinData(flows), ConcatData(flows)
    for _ in range(2):
        assert list(joined) == [[i] * len(counts) for i in range(min(counts))]
        assert list(parts) == [[i] for count in counts for i in range(count)]
    assert len(joined) == min(counts)
    assert len(parts) == sum(counts)


def test_components_come_in_the_order_of_the_flows_in_new_datapoints():
    lists, tuples = flow_of([[1, 2], (3,)]), flow_of([("a",), ("b", "c")])
    assert list(JoinData([lists, tuples])) == [[1, 2, "a"], [3, "b", "c"]]
    first = {"b": 0}
    (joined,) = JoinData([flow_of([first]), flow_of([{"c": 5, "a": 7}])])
    assert list(joined.items()) == [("b", 0), ("c", 5), ("a", 7)] and first == {"b": 0}
    (joined,) = JoinData([flow_of([lists.lst])])
    assert joined == lists.lst and joined is not lists.lst


@pytest.mark.parametrize(
    "datapoints, error, message",
    [
        ([{"a": 1}, {"b": 2}, {"a": 3}], ValueError, "a dict of a, a dict of b, a dict of a: two"),
        ([(1,), {"a": 1}], TypeError, "yielded a tuple of 1 components, a dict of a. Make them"),
        ([[1], 2], TypeError, r"components, a int.*yield \[component\]"),
    ],
)
def test_what_cannot_be_joined(datapoints, error, message):
    flow = JoinData([DataFromList([datapoint]) for datapoint in datapoints])
    with pytest.raises(error, match=message):
        list(flow)


def test_different_lengths_are_logged_once(capsys):
    flow = JoinData([numbers(5), DataFromGenerator(three), numbers(4)])
    list(flow)
    list(flow)
    assert capsys.readouterr().out.count("different lengths: 5, unknown, 4. A pass ends") == 1
    JoinData([numbers(3), DataFromGenerator(three), numbers(3)])
    assert capsys.readouterr().out == ""


def test_joining_stops_before_it_takes_from_the_flows_behind_the_shortest():
    taken = []

    def source():
        for i in itertools.count():
            taken.append(i)
            yield [i]

    assert len(list(JoinData([numbers(3), DataFromGenerator(source)]))) == 3
    assert taken == [0, 1, 2]


@pytest.mark.parametrize("kind", COMBINED)
def test_it_takes_any_iterable_of_flows_and_copies_it(kind):
    flows = [numbers(2)]
    combined = kind(flow for flow in flows), kind(flows)
    flows.append(numbers(3))
    assert [len(flow.df_lists) for flow in combined] == [1, 1]
    with pytest.raises(TypeError, match=f"{kind.__name__} takes a list of flows, but got one"):
        kind(numbers(3))
    with pytest.raises(TypeError, match=f"{kind.__name__} .* but number 1 of 2 .* is range"):
        kind([numbers(3), range(3)])


@pytest.mark.parametrize("name", ["reset_state", "start_processes", "close"])
def test_each_flow_is_called_once(name):
    one, two = [], []
    twice = Calls(one)
    getattr(ConcatData([twice, Calls(two), twice]), name)()
    assert one == two == [name]


def test_all_flows_are_closed_whatever_happens():
    calls = []
    flow = JoinData([Calls(calls, ValueError("the first")), Foreign(), Calls(calls)])
    with pytest.raises(ValueError, match="the first"):
        flow.close()
    assert calls == ["close", "close"]


def test_what_only_looks_like_a_flow_will_do():
    flow = ConcatData([Foreign(), Foreign()])
    flow.reset_state()
    flow.start_processes()
    assert len(list(flow)) == 10
    flow.close()
    with pytest.raises(StateNotKept, match="Foreign keeps no state"):
        flow.state_dict()


@pytest.mark.parametrize("kind", COMBINED)
def test_it_is_seeded_if_all_flows_are(kind, monkeypatch):
    class Queue(DataFromQueue):
        def __len__(self):
            return 1

    fix_rng_seed(0)
    assert kind([Of2017(), shuffled(3)]).seeded
    assert not kind([Of2017(), Queue(queue.Queue())]).seeded
    monkeypatch.setattr("tensorpack.utils.rng._streams.seeded", False)
    assert not kind([Of2017(), shuffled(3)]).seeded
    drawing = kind in (RandomChooseData, RandomMixData)
    assert kind([Of2017(), Of2017()]).seeded != drawing


@pytest.mark.parametrize("kind", [JoinData, RandomChooseData, RandomMixData])
def test_two_passes_of_one_flow_at_the_same_time_have_no_state(kind):
    flow = shuffled(3)
    for call in kind([flow, flow]).state_dict, lambda: kind([flow, flow]).load_state_dict({}):
        with pytest.raises(StateNotKept, match=f"{kind.__name__} .* one flow twice"):
            call()


@pytest.mark.parametrize("kind", [*COMBINED, LocallyShuffleData, CacheData])
def test_a_flow_that_begins_late_has_a_state_that_is_of_no_use(kind):
    flow = MapData(Late(), doubled)
    combined = kind([flow]) if kind in COMBINED else kind(flow, 2)
    assert len(list(combined)) == 5
    with pytest.raises(StateNotKept, match=r"Late.__iter__\(\) is a generator, so a pass begins"):
        combined.state_dict()


def test_a_state_of_other_flows():
    flow = ConcatData([numbers(2), numbers(2)])
    state = flow.state_dict()
    for wrong in state["flows"][:1], None:
        with pytest.raises(ValueError, match="it needs the states of 2 flows, but got"):
            flow.load_state_dict({**state, "flows": wrong})


@pytest.mark.parametrize(
    "make_flow",
    [
        lambda: JoinData([shuffled(9), shuffled(9)]),
        lambda: ConcatData([shuffled(9), shuffled(9)]),
        lambda: LocallyShuffleData(shuffled(30), 4),
        lambda: MultiThreadMapData(shuffled(30), 3, doubled, buffer_size=5, strict=True),
        lambda: BatchDataByShape(MapData(shuffled(30), of_three_shapes), 2, 0),
    ],
)
def test_a_state_after_passes_at_the_same_time_is_that_of_the_one_advanced_last(make_flow):
    flow = make_flow()
    ended, going, other = iter(flow), iter(flow), iter(flow)
    list(ended)
    for datapoints, count in (going, 1), (other, 12), (going, 2):
        list(itertools.islice(datapoints, count))
    twin = make_flow()
    twin.load_state_dict(pickle.loads(pickle.dumps(flow.state_dict())))
    rest = list(going)
    assert len(rest) > 3
    assert_same(list(twin), rest)


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
