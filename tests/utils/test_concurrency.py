"""Tests of `tensorpack.utils.concurrency`."""

import itertools

import pytest

from tensorpack.utils.concurrency import OrderedContainer


@pytest.mark.parametrize("order", list(itertools.permutations([5, 6, 7])))
def test_results_come_out_in_order(order):
    container, out = OrderedContainer(start=5), []
    for rank in order:
        container.put(rank, str(rank))
        while container.has_next():
            out.append(container.get())
    assert out == [(5, "5"), (6, "6"), (7, "7")]


def test_a_gap_holds_everything_back():
    container = OrderedContainer()
    container.put(1, "b")
    assert not container.has_next()
    with pytest.raises(RuntimeError, match="Number 0 is not available"):
        container.get()


@pytest.mark.parametrize("rank", [0, 1])
def test_a_number_comes_once(rank):
    container = OrderedContainer()
    container.put(0, None)
    container.get()
    container.put(1, None)
    with pytest.raises(ValueError, match=f"Number {rank} was added before"):
        container.put(rank, None)
