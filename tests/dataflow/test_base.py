"""The contract itself: both spellings of its methods, unknown lengths, random streams."""

import operator
import queue

import numpy as np
import pytest

from tensorpack.dataflow import (
    BatchData,
    DataFlow,
    DataFromList,
    DataFromQueue,
    FakeData,
    JoinData,
    MapData,
    ProxyDataFlow,
    RepeatedData,
    RNGDataFlow,
    StateNotKept,
    UnknownLength,
)
from tensorpack.dataflow.base import DataFlowReentrantGuard
from tensorpack.utils import fix_rng_seed
from tensorpack.utils.rng import is_seeded
from tests.contracts.dataflow import contract_of
from tests.dataflow.flows import Of2017, ResetsCounted, numbers


class Later(DataFlow):
    def __iter__(self):
        yield from ([i] for i in range(5))

    def __len__(self):
        return 5


class Doubled(ProxyDataFlow):
    """Overrides by the name of 2017, and calls the base class by both names."""

    def get_data(self):
        yield from super().get_data()
        yield from super().__iter__()

    def size(self):
        return super().size() + super().__len__()


class Tripled(Doubled):
    def __iter__(self):
        yield from super().__iter__()
        yield from self.ds.get_data()

    def __len__(self):
        return super().__len__() + self.ds.size()


class Dice(RNGDataFlow):
    def __iter__(self):
        rng = self.rng_of_pass()
        for _ in range(10):
            yield [rng.randint(6)]

    def __len__(self):
        return 10


TestLater = contract_of(lambda: Later(), length=5, keeps_state=False)
TestProxy = contract_of(lambda: ProxyDataFlow(Of2017()), length=5, keeps_state=False)
TestMixedNames = contract_of(lambda: Tripled(Later()), length=15, keeps_state=False)
TestDice = contract_of(lambda: Dice(), length=10, deterministic=False, keeps_state=False)
TestProxyOfAFlowWithAState = contract_of(
    lambda: ProxyDataFlow(DataFromList([[i] for i in range(5)])), length=5, deterministic=False
)


def test_an_override_by_either_name_is_found_by_both():
    flow = Doubled(Of2017())
    assert list(flow) == list(flow.get_data()) == [[i] for i in range(5)] * 2
    assert len(flow) == flow.size() == 10


def test_a_mixin_may_bring_the_names_of_2017():
    class Mixin:
        def get_data(self):
            yield ["mixin"]

        def size(self):
            return 1

    mixed = type("Mixed", (Mixin, Later), {})
    for cls in mixed, type("Child", (mixed,), {}):
        assert list(cls()) == [["mixin"]] and len(cls()) == 1


def test_both_names_of_one_class_stay_as_they_are():
    class Both(DataFlow):
        def __iter__(self):
            yield ["later"]

        def get_data(self):
            yield ["2017"]

    assert list(Both()) == [["later"]]
    assert list(Both().get_data()) == [["2017"]]


@pytest.mark.parametrize("returned", [[[1], [2]], np.array([[1], [2]])])
def test_a_get_data_may_return_what_can_be_iterated(returned):
    flow = type("Returns", (DataFlow,), {"get_data": lambda self: returned})()
    assert [list(datapoint) for datapoint in ProxyDataFlow(flow)] == [[1], [2]]


def test_a_flow_that_defines_nothing_says_so():
    flow = type("Nothing", (DataFlow,), {})()
    flow.reset_state()
    for begin in flow.__iter__, flow.get_data:
        with pytest.raises(NotImplementedError, match=r"define Nothing.__iter__\(\)"):
            begin()
    with pytest.raises(UnknownLength, match="The length of Nothing is not known"):
        len(flow)


def test_a_size_that_is_not_implemented_is_a_type_error_for_len():
    class Unsized(Of2017):
        def size(self):
            raise NotImplementedError()

    for flow in Unsized(), ProxyDataFlow(Unsized()):
        with pytest.raises(UnknownLength, match="Unsized"):
            len(flow)
    with pytest.raises(NotImplementedError):
        Unsized().size()
    assert len(list(Unsized())) == 5  # `list` asks for the length, and takes only TypeError


class Unmeasured(DataFlow):
    """Says that its length is not known as flows of 2018 did."""

    def __iter__(self):
        yield from ([i] for i in range(5))

    def __len__(self):
        """How many."""
        raise NotImplementedError("an unbounded log")


def test_a_length_that_is_not_implemented_is_a_type_error_for_len():
    with pytest.raises(UnknownLength, match="Unmeasured is not known.*'an unbounded log'"):
        len(Unmeasured())
    with pytest.raises(UnknownLength):
        Unmeasured().size()
    assert operator.length_hint(Unmeasured(), 7) == 7
    assert len(list(Unmeasured())) == 5
    batches = BatchData(Unmeasured(), 2, remainder=True)
    assert [len(batch[0]) for batch in batches] == [2, 2, 1]
    assert list(JoinData([Unmeasured(), Unmeasured()])) == [[i, i] for i in range(5)]


@pytest.mark.parametrize(
    "wrap, wrong, message",
    [
        (ProxyDataFlow, [[1]], "ProxyDataFlow wraps a DataFlow, but got list"),
        (lambda ds: BatchData(ds, 2), FakeData, r"the class FakeData.*: FakeData\(...\)"),
    ],
)
def test_proxy_takes_only_flows(wrap, wrong, message):
    with pytest.raises(TypeError, match=message):
        wrap(wrong)


def test_proxy_resets_what_it_wraps():
    inner = ResetsCounted([[1]])
    ProxyDataFlow(ProxyDataFlow(inner)).reset_state()
    assert inner.resets == 1


def test_random_streams_come_from_the_root_seed():
    def rolls(seed):
        fix_rng_seed(seed)
        flows = [Dice(), Dice()]
        for flow in flows:
            flow.reset_state()
        return [[list(flow) for _ in range(2)] for flow in flows]

    first = rolls(1)
    assert first == rolls(1)
    assert first != rolls(2)
    one, two = first
    assert one != two
    assert one[0] != one[1]


class WithState(Later):
    def state_dict(self):
        return {"mine": 1}

    def load_state_dict(self, state):
        self.loaded = state


def has_no_state(flow):
    for call in flow.state_dict, lambda: flow.load_state_dict({}):
        with pytest.raises(StateNotKept, match=f"{type(flow).__name__} keeps no state"):
            call()
    return True


@pytest.mark.parametrize("name", ["__iter__", "get_data"])
def test_an_inherited_state_is_not_that_of_another_iteration(name):
    body = {name: lambda self: iter([[1]])}
    for base in WithState, ProxyDataFlow, DataFromList, MapData:
        child = type("Child", (base,), body)
        grandchild = type("Grandchild", (child,), {})
        mixed = type("Mixed", (type("Mixin", (), body), base), {})
        for cls in child, grandchild, mixed:
            assert has_no_state(cls.__new__(cls))


def test_a_state_beside_or_below_the_iteration_is_kept():
    class Beside(WithState):
        def __iter__(self):
            yield [1]

        def state_dict(self):
            return {"beside": 2}

    class Quiet(WithState):
        def reset_state(self):
            pass

    class Below(Later):
        state_dict = WithState.state_dict
        load_state_dict = WithState.load_state_dict

    assert Beside().state_dict() == {"beside": 2}
    for cls in Quiet, Below:
        assert ProxyDataFlow(cls()).state_dict() == {"ds": {"mine": 1}}
    flow = ProxyDataFlow(Quiet())
    flow.load_state_dict({"ds": {"mine": 3}})
    assert flow.ds.loaded == {"mine": 3}


def test_what_is_seeded(monkeypatch):
    plain, random = Later(), [Dice(), DataFromList([[1]]), FakeData([[]])]
    monkeypatch.setattr("tensorpack.utils.rng._streams.seeded", False)
    assert plain.seeded
    assert not any(flow.seeded for flow in random)
    assert not any(RepeatedData(ProxyDataFlow(flow), -1).seeded for flow in random)
    fix_rng_seed(0)
    assert is_seeded()
    assert all(ProxyDataFlow(flow).seeded for flow in [plain, *random])
    assert not ProxyDataFlow(DataFromQueue(queue.Queue())).seeded
    noise = type("Noise", (RNGDataFlow, ProxyDataFlow), {})
    assert noise(Later()).seeded and not noise(DataFromQueue(queue.Queue())).seeded


def test_a_guard_lets_one_pass_in():
    guard = DataFlowReentrantGuard()
    with guard:
        with pytest.raises(RuntimeError, match="two passes at once"):
            with guard:
                raise AssertionError("two passes are in")
    with guard:
        pass


def test_names_of_positions_are_free_in_flows_without_one():
    class Scripts(MapData):
        _position, _loaded = 3, "weights"

    flow = Scripts(numbers(3), lambda dp: dp)
    flow.reset_state()
    flow.load_state_dict(flow.state_dict())
    assert list(flow) == list(numbers(3)) and (flow._position, flow._loaded) == (3, "weights")
