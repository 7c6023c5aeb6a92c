"""Only datapoints of one shape are in a batch, in the order they came, and none twice."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorpack.dataflow import (
    DataFromGenerator,
    DataFromList,
    RepeatedData,
)
from tensorpack.dataflow.batch import BatchDataByShape
from tensorpack.dataflow.join import ConcatData, JoinData
from tests.contracts.dataflow import assert_same, contract_of
from tests.dataflow.flows import check_resumes


def image(height, number):
    return [np.full([height, 2], number, np.uint8), number]


def images(heights, shuffle=False):
    return DataFromList([image(*each) for each in zip(heights, itertools.count())], shuffle)


TestBatchDataByShape = contract_of(
    lambda: BatchDataByShape(images([1, 2, 1, 1, 2, 2, 1, 2]), 2, 0), length=4, has_len="about"
)
TestInRandomOrderWithRemainder = contract_of(
    lambda: BatchDataByShape(images([1, 2, 3] * 5, shuffle=True), 3, 0, remainder=True),
    length=6,
    has_len="about",
    deterministic=False,
)
TestWithoutEnd = contract_of(
    lambda: BatchDataByShape(RepeatedData(images([1, 2, 3], shuffle=True), -1), 4, 0),
    has_len=False,
    deterministic=False,
)


@given(st.lists(st.integers(0, 3), max_size=20), st.integers(1, 5))
def test_groups_of_one_shape_in_their_order_and_the_rest_in_the_end(heights, size):
    flow = BatchDataByShape(images(heights), size, 0, remainder=True)
    for _ in range(2):
        found = labels_by_height(flow)
        for height in set(heights):
            numbers = [i for i, each in enumerate(heights) if each == height]
            groups = [numbers[i : i + size] for i in range(0, len(numbers), size)]
            assert found.pop(height, []) == groups
        assert found == {}


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.integers(1, 5))
def test_groups_of_one_shape_in_their_order_from_pass_to_pass(heights, size):
    if size > len(heights):
        with pytest.raises(ValueError, match=f"{size}.* has only {len(heights)} datapoints"):
            BatchDataByShape(images(heights), size, 0)
        return
    flow = BatchDataByShape(images(heights), size, 0)
    found = {}
    for _ in range(6):
        one_pass = labels_by_height(flow)
        assert one_pass != {}
        for height, groups in one_pass.items():
            found.setdefault(height, []).extend(groups)
    for height, groups in found.items():
        numbers = [i for i, each in enumerate(heights) if each == height]
        whole = [label for group in groups for label in group]
        assert whole == (numbers * len(whole))[: len(whole)]
        assert {len(group) for group in groups} == {size}


def labels_by_height(batches):
    found = {}
    for batch, labels in batches:
        assert batch.shape == (len(labels), *batch.shape[1:])
        assert (batch == labels[:, None, None]).all()
        found.setdefault(batch.shape[1], []).append(labels.tolist())
    return found


def test_what_waits_between_passes_is_part_of_the_state_until_reset_state():
    def make():
        return BatchDataByShape(images([1, 1, 2, 2, 2]), 2, 0)

    flow, other = make(), make()
    assert [labels.tolist() for _, labels in flow] == [[0, 1], [2, 3]]
    other.load_state_dict(pickle.loads(pickle.dumps(flow.state_dict())))
    assert list(other) == []
    for each in flow, other:
        assert [labels.tolist() for _, labels in each] == [[0, 1], [4, 2], [3, 4]]
    flow.reset_state()
    assert_same(list(flow), list(make()))


def test_a_batch_comes_as_soon_as_it_is_full():
    taken = []

    def source():
        for datapoint in images([1, 2, 2, 1, 1]):
            taken.append(datapoint)
            yield datapoint

    batches = iter(BatchDataByShape(DataFromGenerator(source), 2, 0))
    assert next(batches)[1].tolist() == [1, 2]
    assert len(taken) == 3
    assert next(batches)[1].tolist() == [0, 3]
    assert len(taken) == 4
    assert list(batches) == []


@pytest.mark.parametrize("count", range(7))
@pytest.mark.parametrize("combine", [ConcatData, JoinData])
def test_what_waits_is_not_lost_where_the_pass_of_another_flow_is_resumed(combine, count):
    def make_flow():
        flow = BatchDataByShape(images([1, 1, 2, 2, 2]), 2, 0)
        return combine([flow, BatchDataByShape(images([1, 1, 3, 3, 2, 2]), 2, 0)])

    check_resumes(make_flow, count)


def test_a_state_of_larger_batches():
    flow = BatchDataByShape(images([1, 1, 2, 2, 2]), 3, 0)
    next(iter(flow))
    with pytest.raises(ValueError, match="2 datapoints of one shape wait for a batch of 2"):
        BatchDataByShape(images([1, 1, 2, 2, 2]), 2, 0).load_state_dict(flow.state_dict())


@pytest.mark.parametrize("remainder, length", [(False, 2), (True, 3)])
def test_length_is_that_of_batches_of_one_shape(remainder, length):
    assert len(BatchDataByShape(images([1, 2, 3, 4, 5]), 2, 0, remainder)) == length
