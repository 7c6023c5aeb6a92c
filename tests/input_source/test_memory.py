"""Tests of the check whether a queue and the buffers before it fit into the memory."""

import numpy as np
import pytest

from tensorpack.dataflow import (
    BatchData,
    DataFromList,
    MapData,
    MultiProcessMapData,
    MultiProcessRunner,
    MultiThreadMapData,
    MultiThreadRunner,
)
from tensorpack.input_source import QueueInput
from tensorpack.input_source.check import check_room, waiting_bytes
from tensorpack.train import SimpleTrainer
from tests.helpers import TinyModel, config

MB = np.zeros(10**6, np.uint8)


def source():
    return DataFromList([[1]], shuffle=False)


def same(datapoint):
    return datapoint


def check(capacity, available, ds=None):
    check_room(capacity, [MB, MB], ds or source(), available)


def test_a_queue_that_does_not_fit_is_refused_with_what_does():
    check(50, 100 * 10**6)
    with pytest.raises(ValueError) as refused:
        check(51, 100 * 10**6)
    assert "51 datapoints of 2.0 MB, 102.0 MB in all, but 100.0 MB of memory" in str(refused.value)
    assert "a queue for 25 of them" in str(refused.value)


def test_what_has_no_limit_is_not_checked():
    check(0, 1)
    check(-1, 1)


def buffered():
    return MultiThreadMapData(source(), 2, same, buffer_size=30, buffer_bytes=40 * 10**6)


@pytest.mark.parametrize(
    "available, logged",
    [
        (900, ""),
        (899, "] The input queue may hold 50.0 MB, and buffers of the dataflow 40.0 MB; 899.0"),
        (90, "90.0 MB of memory are free.\n"),
        (89, "are free. Give a smaller buffer_bytes, or a smaller queue.\n"),
    ],
)
def test_what_counts_is_said(available, logged, capsys):
    check(25, available * 10**6, buffered())
    out = capsys.readouterr().out
    assert logged in out if logged else not out
    assert ("WRN" in out) == (available < 90)


@pytest.mark.parametrize(
    "make, number",
    [
        (source, 0),
        (lambda: MapData(BatchData(source(), 1), same), 0),
        (lambda: MultiThreadMapData(source(), 2, same, buffer_size=30), 30),
        (lambda: BatchData(MultiThreadMapData(source(), 2, same, buffer_size=30), 1), 30),
        (lambda: MultiThreadRunner(source, num_prefetch=7, num_thread=2), 7),
        (lambda: MultiProcessRunner(source(), num_prefetch=8, num_proc=2), 8),
        (lambda: MultiProcessMapData(source(), 2, same, buffer_size=9), 22),
    ],
)
def test_what_waits_in_flows(make, number):
    flow = make()
    assert waiting_bytes(flow, 100) == 100 * number
    limit = sum(nbytes for _, nbytes in getattr(flow, "waiting_limits", ()))
    if limit:
        assert waiting_bytes(flow, 10**12) == limit


def test_a_run_that_would_fill_the_memory_ends_at_its_first_datapoint():
    flow = DataFromList([[np.ones(10**6, np.float32)] * 2])
    queue = QueueInput(flow, capacity=2 * 10**9)
    with pytest.raises(ValueError, match=r"2000000000 datapoints of 8.0 MB, 16000\.0 TB in all"):
        SimpleTrainer(config(model=TinyModel(), data=queue)).train()
