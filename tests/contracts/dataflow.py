"""What every dataflow must do: a test class per flow inherits `DataFlowContract`."""

import itertools
import pickle

import numpy as np
import pytest


class DataFlowContract:
    """Inherit, define `make_flow`, and correct the class attributes where they do not hold::

        class TestMyFlow(DataFlowContract):
            length = 10

            def make_flow(self):
                return MyFlow(...)

    Attributes:
      length: the number of datapoints in a pass, at least one; None if it has no end.
      has_len: whether `len` works.
      deterministic: whether all passes are equal.
      independent: whether passes at the same time leave one another alone. False only for flows
        that say so in their docstring, because they hand on what can be read only once.
      picklable: whether the flow can be sent to another process.
      sample: how many datapoints are taken of a flow without an end.
    """

    length = None
    has_len = True
    deterministic = True
    independent = True
    picklable = True
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

    def test_len_is_the_number_of_datapoints_or_both_errors(self):
        flow = self.make_flow()
        flow.reset_state()
        assert len(self.take(flow)) == self.expected_length
        if self.has_len:
            assert len(flow) == self.length
            return
        for error in TypeError, NotImplementedError:
            with pytest.raises(error, match="length"):
                len(flow)
            with pytest.raises(error, match="length"):
                flow.size()

    def test_names_of_2017(self):
        flow = self.make_flow()
        flow.reset_state()
        datapoints = self.take(flow.get_data())
        assert len(datapoints) == self.expected_length
        if self.has_len:
            assert flow.size() == len(flow)
        if self.deterministic:
            assert_same(self.take(self.make_flow()), datapoints)

    def test_always_true(self):
        assert bool(self.make_flow()) is True

    def test_works_without_reset_state(self):
        assert len(self.take(self.make_flow())) == self.expected_length

    def test_reset_state_twice(self):
        flow = self.make_flow()
        flow.reset_state()
        flow.reset_state()
        first = self.take(flow)
        flow.reset_state()
        second = self.take(flow)
        assert len(first) == len(second) == self.expected_length
        if self.deterministic:
            assert_same(first, second)

    def test_passes_are_equal(self):
        flow = self.make_flow()
        flow.reset_state()
        first, second = self.take(flow), self.take(flow)
        assert len(first) == len(second) == self.expected_length
        if self.deterministic:
            assert_same(first, second)

    def test_interleaved_passes(self):
        if not self.independent:
            pytest.skip("passes of this flow continue one another")
        flow = self.make_flow()
        flow.reset_state()
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

    def test_an_abandoned_pass_is_harmless(self):
        flow = self.make_flow()
        flow.reset_state()
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

    def test_what_was_yielded_is_never_written_again(self):
        flow = self.make_flow()
        flow.reset_state()
        kept, snapshots = [], []
        for datapoint in itertools.islice(flow, self.expected_length):
            kept.append(datapoint)
            snapshots.append(pickle.dumps(datapoint))
        assert_same(kept, [pickle.loads(snapshot) for snapshot in snapshots])

    def test_pickle(self):
        if not self.picklable:
            pytest.skip("this flow holds what cannot be pickled")
        flow = self.make_flow()
        flow.reset_state()
        next(iter(flow))
        twin = pickle.loads(pickle.dumps(flow))
        twin.reset_state()
        datapoints = self.take(twin)
        assert len(datapoints) == self.expected_length
        if self.deterministic:
            assert_same(datapoints, self.take(self.make_flow()))


def assert_same(found, expected):
    """Compares datapoints, or lists of them: structure, types, dtypes, shapes and values."""
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
        assert found == expected
