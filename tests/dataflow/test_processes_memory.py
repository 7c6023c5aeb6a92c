"""Nothing that came from a process changes, whoever keeps it, and all of its memory goes back."""

import errno
import gc
import itertools
import multiprocessing
import os
import time

import numpy as np
import pytest

from tensorpack.dataflow import DataFlowTerminated, DataFromList, MapData, MultiProcessMapData
from tests.contracts.dataflow import assert_same
from tests.dataflow import process_functions as functions
from tests.dataflow.process_flows import closing, mixture
from tests.dataflow.process_functions import Endless, numbers
from tests.processes import named_memory, open_files, wait_until

pytestmark = pytest.mark.usefixtures("own_streams")


class TestMemory:
    """Nothing that was yielded changes, whoever keeps it."""

    @pytest.mark.parametrize("num_prefetch", [1, 8])
    @pytest.mark.parametrize("buffer_bytes", [1, 40000, 2**30])
    def test_a_consumer_may_keep_everything(self, num_prefetch, buffer_bytes):
        ds = MapData(numbers(200), functions.whole_array)
        with closing(mixture(ds, 1, num_prefetch, buffer_bytes=buffer_bytes)) as flow:
            most = 200 if num_prefetch > 1 else 30
            datapoints = list(itertools.islice(flow, most))
        assert len(datapoints) == most
        for number, (array,) in enumerate(datapoints):
            assert array.min() == array.max() == number % 256

    def test_descriptors_and_processes_are_gone_after_close(self):
        gc.collect()  # of tests before
        before = open_files(), named_memory()
        flow = mixture(MapData(numbers(30), functions.whole_array), 1)
        going = iter(flow)
        kept = [next(going) for _ in range(9)]
        list(zip(flow, flow))
        flow.close()
        assert multiprocessing.active_children() == []
        with pytest.raises(DataFlowTerminated):
            list(going)
        assert [array[0] for (array,) in kept] == list(range(9))
        kept.clear()
        gc.collect()
        assert (open_files(), named_memory()) == before


WITH_PROCESSES = {
    "runner": lambda ds, **options: mixture(ds, 1, 4, **options),
    "map": lambda ds, **options: MultiProcessMapData(
        ds, 1, functions.same, start_method="fork", **options
    ),
}
both_kinds = pytest.mark.parametrize("kind", WITH_PROCESSES)


@both_kinds
def test_a_datapoint_of_more_than_buffer_bytes(kind):
    ds = DataFromList([[np.full(300000, n), b"x" * 100000] for n in range(5)], shuffle=False)
    with closing(WITH_PROCESSES[kind](ds, buffer_bytes=1000)) as flow:
        assert_same(list(flow), list(ds))


@both_kinds
def test_a_machine_without_room_for_it_is_an_error_with_advice(kind, monkeypatch):
    def refuse(*place):
        raise OSError(errno.ENOSPC, "No space left on device")

    ds = MapData(numbers(3), functions.whole_array)
    with closing(WITH_PROCESSES[kind](ds)) as flow:
        with monkeypatch.context() as patch:
            patch.setattr(os, "posix_fallocate", refuse)
            with pytest.raises(
                OSError, match=r"No room for 0\.1 MiB .*ENOSPC.*smaller buffer_by.*shm-size"
            ):
                list(flow)
        assert len(list(flow)) == 3  # with new processes


def test_a_slow_consumer_lets_no_more_wait_than_asked_for():
    made = multiprocessing.get_context("fork").Value("i", 0)

    def count(datapoint):
        made.value += 1
        return datapoint

    with closing(mixture(MapData(Endless(), count), 1, 5)) as flow:
        going = iter(flow)
        next(going)
        assert wait_until(lambda: made.value >= 6)
        time.sleep(0.05)
        assert made.value <= 1 + 5 + 1  # one is at hand when there is no room
