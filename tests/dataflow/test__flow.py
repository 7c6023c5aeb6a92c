"""What a flow holds for one process is not used by another one."""

import os
import queue
from contextlib import closing

import numpy as np
import pytest

from tensorpack.dataflow import (
    BatchData,
    ConcatData,
    DataFromIterable,
    DataFromQueue,
    FixedSizeData,
    JoinData,
    MultiProcessMapAndBatchData,
    MultiThreadRunner,
    PrefetchDataZMQ,
    ProxyDataFlow,
    RemoteDataZMQ,
    RepeatedData,
    UnknownLength,
)
from tensorpack.dataflow._flow import ProcessLocal, length_of, length_or_none
from tests.dataflow.flows import Foreign, Of2017
from tests.dataflow.process_functions import same


def test_a_forked_copy_makes_its_own_and_keeps_that_of_the_parent_alive(monkeypatch):
    class Value:
        def __del__(self):
            deleted.append(self)

    deleted = []
    held = ProcessLocal(Value)
    value = id(held.get())
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert held.current() is None and held.take() is None
    assert id(held.get()) != value and deleted == []


class Said(Of2017):
    """Five datapoints, and a `size` that is anything."""

    def __init__(self, said):
        self.said = said

    def size(self):
        return self.said


class Mistaken(Said):
    """Has a mistake in its `__len__`."""

    def __len__(self):
        return len(self.said) + None


class ForeignEndless(Foreign):
    def __len__(self):
        raise NotImplementedError


@pytest.mark.parametrize("said", [2.5, -1])
def test_a_length_that_is_not_a_count_is_a_value_error(said):
    expected = rf"Said: what size\(\) returns must be a .*, but got {said}"
    with pytest.raises(ValueError, match=expected):
        len(Said(said))
    with pytest.raises(ValueError, match=expected):
        list(Said(said))


@pytest.mark.parametrize("said", [0, np.int64(5), np.array(5), 10 / 2])
def test_every_kind_of_whole_number_is_a_length(said):
    assert len(Said(said)) == length_of(Said(said)) == length_or_none(Said(said)) == said


@pytest.mark.parametrize(
    "flow", [DataFromQueue(queue.Queue()), RemoteDataZMQ("tcp://127.0.0.1:*")], ids=["queue", "net"]
)
def test_a_flow_that_others_fill_says_how_to_do_without_a_length(flow):
    name = type(flow).__name__
    with pytest.raises(UnknownLength, match=rf"of {name} is not known: .* FixedSizeData\(ds"):
        len(flow)
    assert length_or_none(flow) is None
    assert len(FixedSizeData(flow, 3)) == 3


def test_what_has_no_length_and_what_does_not_tell_it_are_unknown():
    for flow in Foreign(), ForeignEndless(), RepeatedData(Said(5), -1), ProxyDataFlow(Foreign()):
        assert length_or_none(flow) is None
    with pytest.raises(UnknownLength, match=r"of Foreign is not known: define Foreign.__len__\(\)"):
        length_of(Foreign())


@pytest.mark.parametrize(
    "wrap",
    [
        ProxyDataFlow,
        lambda ds: BatchData(ds, 2),
        lambda ds: ConcatData([ds, Said(5)]),
        lambda ds: JoinData([ds, Said(5)]),
        lambda ds: MultiProcessMapAndBatchData(ds, 1, same, 2),
        lambda ds: MultiThreadRunner(lambda: ds, 5, 1),
    ],
)
def test_the_length_of_what_is_made_from_a_foreign_flow_is_unknown(wrap):
    with closing(wrap(Foreign())) as flow:
        assert length_or_none(flow) is None


def test_a_mistake_is_not_taken_for_an_unknown_length():
    with pytest.raises(TypeError, match="unsupported operand"):
        BatchData(Mistaken("five"), 20)


@pytest.mark.parametrize(
    "wrap",
    [lambda ds: PrefetchDataZMQ(ds, 1), lambda ds: MultiThreadRunner(lambda: ds, 5, 1)],
    ids=["processes", "threads"],
)
def test_no_pass_is_without_end_by_mistake(wrap):
    with closing(wrap(Mistaken("five"))) as wrapped:
        wrapped.reset_state()
        with pytest.raises(TypeError, match="unsupported operand"):
            next(iter(wrapped))


def test_an_iterable_may_say_that_it_has_no_length():
    class Stream(Foreign):
        def __len__(self):
            raise TypeError("a stream has no length")

    assert length_or_none(DataFromIterable(Stream())) is None
    assert length_or_none(DataFromIterable(iter([[1]]))) is None
    assert len(FixedSizeData(DataFromIterable(Stream()), 3)) == 3
