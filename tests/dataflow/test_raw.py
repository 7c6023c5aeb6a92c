"""Flows from lists, iterables, generators and queues; what can be read only once says so."""

import collections
import itertools
import multiprocessing
import queue
import time

import numpy as np
import pytest

from tensorpack.dataflow import (
    DataFlowTerminated,
    DataFromGenerator,
    DataFromIterable,
    DataFromList,
    DataFromQueue,
    FakeData,
    SharedList,
)
from tests.contracts.dataflow import contract_of
from tests.dataflow.flows import numbers, shuffled
from tests.processes import in_thread


def five():
    for i in range(5):
        yield [i, np.float32(i)]


def endless():
    for i in itertools.count():
        yield [i]


TestDataFromList = contract_of(lambda: numbers(7), length=7)
TestShuffledDataFromList = contract_of(lambda: shuffled(7), length=7, deterministic=False)
TestDataFromIterable = contract_of(
    lambda: DataFromIterable(dict.fromkeys(range(6))), length=6, keeps_state=False
)
TestDataFromGenerator = contract_of(
    lambda: DataFromGenerator(five), length=5, has_len=False, keeps_state=False
)
TestSizedDataFromGenerator = contract_of(
    lambda: DataFromGenerator(endless, size=5), length=5, keeps_state=False
)
TestEndlessDataFromGenerator = contract_of(
    lambda: DataFromGenerator(endless), has_len=False, keeps_state=False
)
TestOpenGenerator = contract_of(
    lambda: DataFromGenerator(endless()),
    has_len=False,
    deterministic=False,
    independent=False,
    picklable=False,
    keeps_state=False,
)


def queued():
    source = queue.Queue()
    for i in range(100):
        source.put([i])
    return DataFromQueue(source)


TestDataFromQueue = contract_of(
    queued,
    has_len=False,
    deterministic=False,
    independent=False,
    picklable=False,
    keeps_state=False,
)


@pytest.mark.parametrize("kind", [queue.Queue, multiprocessing.Queue])
def test_a_pass_that_waits_for_a_queue_ends_when_the_flow_is_closed(kind):
    source = kind()
    flow = DataFromQueue(source)
    thread, errors = in_thread(lambda: list(flow))
    time.sleep(0.2)  # longer than it waits before it looks
    assert thread.is_alive()
    flow.close()
    thread.join(5)
    assert [type(error) for error in errors] == [DataFlowTerminated]
    source.put([1])
    assert next(iter(flow)) == [1]


def test_list_is_shuffled_in_every_pass_and_left_as_it_is():
    datapoints = [[i] for i in range(50)]
    flow = DataFromList(datapoints)
    first, second = list(flow), list(flow)
    assert first != second
    assert sorted(first) == sorted(second) == datapoints == [[i] for i in range(50)]


def test_a_state_of_another_list():
    state = DataFromList([[1], [2]]).state_dict()
    with pytest.raises(ValueError, match="its list had 2 datapoints, this one has 1"):
        DataFromList([[1]]).load_state_dict(state)


@pytest.mark.parametrize("kind", [DataFromGenerator, DataFromIterable])
def test_open_generator_cannot_begin_again(kind):
    flow = kind(five())
    assert len(list(flow)) == 5
    with pytest.raises(RuntimeError, match="give DataFromGenerator the function that makes it"):
        list(flow)


def test_an_open_generator_continues_where_a_pass_ended_or_was_abandoned():
    flow = DataFromGenerator(endless(), size=3)
    assert list(flow) == [[0], [1], [2]]
    one = iter(flow)
    assert next(one) == [3]
    del one
    assert list(flow) == [[4], [5], [6]]


def test_what_can_be_used_as_a_list():
    class Squares:
        def __len__(self):
            return 3

        def __getitem__(self, index):
            return index**2

    array = np.array([0, 1, 4])
    for lst in Squares(), SharedList([0, 1, 4]), (0, 1, 4), collections.deque(array), array:
        assert list(DataFromList(lst, shuffle=False)) == [0, 1, 4]


def test_a_pass_whose_element_raised_resumes_at_that_element():
    class Unreadable(list):
        def __getitem__(self, index):
            if index == 1 and self.broken:
                raise OSError("the disk is away")
            return super().__getitem__(index)

    elements = Unreadable([[0], [1], [2]])
    elements.broken = True
    flow = DataFromList(elements, shuffle=False)
    with pytest.raises(OSError, match="away"):
        list(flow)
    elements.broken = False
    flow.load_state_dict(flow.state_dict())
    assert list(flow) == [[1], [2]]


TestFakeData = contract_of(lambda: FakeData([[2, 3], []], size=12), length=12, deterministic=False)
TestConstantFakeData = contract_of(
    lambda: FakeData([[2, 3], []], size=12, random=False, dtype=["uint8", "float32"]), length=12
)


def test_default_is_float32_in_the_unit_interval():
    flow = FakeData([[50, 40], (7,)])
    assert len(flow) == 1000
    image, label = next(iter(flow))
    assert image.dtype == label.dtype == np.float32
    assert (image.shape, label.shape) == ((50, 40), (7,))
    assert 0 <= image.min() < 0.1 and 0.9 < image.max() <= 1


def test_dtype_and_domain_of_each_component():
    flow = FakeData(
        [[500], [500], [500], [500]],
        dtype=["uint8", "float64", "bool", "int32"],
        domain=[(0, 256), (-2, -1), (0, 1), (-3, 3)],
    )
    bytes_, floats, bools, integers = next(iter(flow))
    assert bytes_.dtype == np.uint8
    assert bytes_.max() > 230
    assert floats.dtype == np.float64
    assert -2 <= floats.min() and floats.max() <= -1
    assert set(bools.tolist()) == {False, True}
    assert set(integers.tolist()) == {-3, -2, -1, 0, 1, 2}


def test_random_arrays_differ_and_constant_ones_are_shared():
    one, two = list(FakeData([[8]], size=4 / 2))
    assert not np.array_equal(one, two)
    one, two = list(FakeData([[8]], size=2, random=False))
    assert one[0] is two[0]
    assert one is not two


def test_shapes_of_arrays():
    for shapes in np.array([[2, 3]]), [np.zeros((2, 3)).shape], iter([iter([2, np.int64(3)])]):
        flow = FakeData(shapes, 1)
        assert [component.shape for (component,) in list(flow) + list(flow)] == [(2, 3)] * 2
    assert list(FakeData([], 2)) == [[], []]
