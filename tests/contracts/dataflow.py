"""What every dataflow must do: a test class per flow inherits `DataFlowContract`."""

import itertools
import pickle

import numpy as np
import pytest

from tensorpack.dataflow import StateNotKept


class DataFlowContract:
    """Tests of the flow of `make_flow`; class attributes say what holds for it.

    Attributes:
      length: the number of datapoints in a pass, at least one; None if it has no end.
      has_len: whether `len` works; "about" if it does, and a pass may have another length.
      deterministic: whether all passes are equal.
      independent: whether passes at the same time leave one another alone. False only for flows
        that say so in their docstring, because they hand on what can be read only once.
      picklable: whether the flow can be sent to another process.
      keeps_state: whether the flow has a `state_dict`.
      sample: how many datapoints are taken of a flow without an end.
    """

    length = None
    has_len = True
    deterministic = True
    independent = True
    picklable = True
    keeps_state = True
    sample = 25

    def make_flow(self):
        """Returns a new flow, alike each time."""
        raise NotImplementedError

    def take(self, datapoints):
        """Returns a whole pass as a list, or `sample` datapoints of one without an end."""
        return list(datapoints if self.length is not None else self.some(datapoints, self.sample))

    @staticmethod
    def some(datapoints, number):
        return list(itertools.islice(datapoints, number))

    @property
    def expected_length(self):
        return self.sample if self.length is None else self.length

    @pytest.fixture
    def flow(self):
        made = self.make_flow()
        made.reset_state()
        yield made
        made.close()

    @pytest.fixture
    def stateful(self, flow):
        if not self.keeps_state:
            pytest.skip("this flow keeps no state")
        return flow

    def test_len_is_the_number_of_datapoints_or_both_errors(self, flow):
        assert len(self.take(flow)) == self.expected_length
        if self.has_len:
            assert self.has_len == "about" or len(flow) == self.length
            return
        for error in TypeError, NotImplementedError:
            with pytest.raises(error, match="length"):
                len(flow)
            with pytest.raises(error, match="length"):
                flow.size()

    def test_names_of_2017(self, flow):
        datapoints = self.take(flow.get_data())
        assert len(datapoints) == self.expected_length
        if self.has_len:
            assert flow.size() == len(flow)
        if self.deterministic:
            assert_same(self.take(self.make_flow()), datapoints)

    def test_works_without_reset_state_and_is_true(self):
        flow = self.make_flow()
        assert bool(flow) is True
        assert len(self.take(flow)) == self.expected_length

    def test_passes_are_equal_also_after_reset_state(self, flow):
        flow.reset_state()
        passes = [self.take(flow), self.take(flow)]
        flow.reset_state()
        passes.append(self.take(flow))
        assert {len(each) for each in passes} == {self.expected_length}
        if self.deterministic:
            assert_same(passes[1:], passes[:-1])

    def test_interleaved_passes(self, flow):
        if not self.independent:
            pytest.skip("passes of this flow continue one another")
        first, second = iter(flow), iter(flow)
        ahead = self.some(first, 1)
        pairs = list(itertools.islice(zip(second, first), self.expected_length - 1))
        begun = ahead + [datapoint for _, datapoint in pairs]
        other = [datapoint for datapoint, _ in pairs] + self.some(second, 1)
        assert len(begun) == len(other) == self.expected_length
        if self.deterministic:
            expected = self.take(self.make_flow())
            assert_same(begun, expected)
            assert_same(other, expected)

    def test_an_abandoned_pass_is_harmless(self, flow):
        going, abandoned = iter(flow), iter(flow)
        ahead = self.some(going, 1)
        next(abandoned)
        getattr(abandoned, "close", lambda: None)()
        del abandoned
        if self.independent:
            assert len(ahead + self.some(going, self.expected_length - 1)) == self.expected_length
            assert len(self.take(flow)) == self.expected_length
        else:
            assert len(self.some(going, 1)) == 1

    def test_what_was_yielded_is_never_written_again(self, flow):
        kept, snapshots = [], []
        for datapoint in itertools.islice(flow, self.expected_length):
            kept.append(datapoint)
            snapshots.append(pickle.dumps(datapoint))
        assert_same(kept, [pickle.loads(snapshot) for snapshot in snapshots])

    def test_pickle(self, flow):
        if not self.picklable:
            pytest.skip("this flow holds what cannot be pickled")
        next(iter(flow))
        twin = pickle.loads(pickle.dumps(flow))
        twin.reset_state()
        datapoints = self.take(twin)
        assert len(datapoints) == self.expected_length
        if self.deterministic:
            assert_same(datapoints, self.take(self.make_flow()))

    def test_without_a_state_it_says_so(self, flow):
        if self.keeps_state:
            pytest.skip("this flow keeps a state")
        with pytest.raises(StateNotKept, match=r"keeps no state: define \w+.state_dict\(\)"):
            flow.state_dict()
        with pytest.raises((StateNotKept, ValueError)):
            flow.load_state_dict({})

    def test_another_flow_continues_from_a_state(self):
        for count in self._counts():
            flow, going = self._after(count)
            self._check_twin(flow, [going], self._saved(flow))

    def test_at_the_end_of_a_pass(self):
        """The rest of that pass is empty, whether or not its end has been seen."""
        if not self.keeps_state or self.length is None:
            pytest.skip("this flow keeps no state or has no end")
        flow, going = self._after(self.length)
        assert list(going) == []
        assert len(list(self._check_twin(flow, [iter([])], self._saved(flow)))) == self.length

    def test_before_anything_and_after_a_pass_was_just_begun(self, stateful):
        self._check_twin(stateful, [], self._saved(stateful))
        self._check_twin(stateful, [iter(stateful)], self._saved(stateful))

    def test_a_loaded_state_is_used_once_and_may_be_replaced(self):
        for count in self._counts():
            flow, going = self._after(count)
            state = self._saved(flow)
            twin = self.make_flow()
            twin.reset_state()
            twin.load_state_dict(self._saved(self._after(1)[0]))
            twin.load_state_dict(state)
            again = self._saved(twin)  # that of what was loaded
            twin.reset_state()
            assert len(self.take(twin)) == self.expected_length
            self._check_twin(flow, [going], again)

    def test_a_state_is_not_changed_by_what_follows(self):
        for count in self._counts():
            flow, going = self._after(count)
            state = flow.state_dict()
            before = pickle.dumps(state)
            self.some(going, 2)
            self.some(flow, 2)
            assert pickle.dumps(state) == before

    def test_a_state_of_something_else(self, stateful):
        for wrong in None, {}, {**stateful.state_dict(), "more": 1}:
            with pytest.raises(ValueError, match="not a state of"):
                stateful.load_state_dict(wrong)

    def _counts(self):
        """After how many datapoints a state is taken; none if none is kept."""
        length = self.expected_length
        return [0, 1, length // 2, length, length + 1, 2 * length] if self.keeps_state else []

    def _after(self, count):
        """A flow that has given `count` datapoints, and the pass it is in."""
        flow = self.make_flow()
        flow.reset_state()
        going = iter(flow)
        while count > 0:
            count -= len(self.some(going, count))
            if count > 0:
                going = iter(flow)
        return flow, going

    @staticmethod
    def _saved(flow):
        """Its state, as it comes into another process."""
        state = flow.state_dict()
        assert_plain(state)
        return pickle.loads(pickle.dumps(state))

    def _check_twin(self, flow, going, state):
        """A new flow with this state yields the rest of the pass, and two more passes."""
        twin = self.make_flow()
        twin.reset_state()  # a random stream of its own
        twin.load_state_dict(state)
        for original in [*going, flow, flow]:
            assert_same(self.take(twin), self.take(original))
        return twin


def contract_of(make_flow, **attributes):
    """Returns a test class of the contract, with these attributes; see `make_flow` there."""
    body = {**attributes, "make_flow": lambda self: make_flow()}
    return type("TestContract", (DataFlowContract,), body)


def assert_plain(state, path=""):
    """Fails unless a state is a tree of what a file can hold without running any code."""
    if isinstance(state, dict):
        for key, each in state.items():
            assert type(key) is str, f"{path} has the key {key!r}"
            assert_plain(each, f"{path}/{key}")
    elif type(state) in (list, tuple):
        for i, each in enumerate(state):
            assert_plain(each, f"{path}/{i}")
    elif isinstance(state, (np.ndarray, np.generic)):
        assert state.dtype.kind in "biufcSU", f"{path} has dtype {state.dtype}"
    else:
        plain = state is None or type(state) in (bool, int, float, str, bytes)
        assert plain, f"{path} is a {type(state).__name__}"


def assert_same(found, expected):
    """Compares datapoints or states: structure, types, dtypes, shapes and values."""
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for each, other in zip(found, expected):
            assert_same(each, other)
    elif isinstance(expected, (np.ndarray, np.generic)):
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)
    else:
        assert found == expected or found != found and expected != expected  # both NaN
