"""Processes begin when they are needed, and end with the flow that has them."""

import gc
import itertools
import multiprocessing
import os

import numpy as np
import pytest

from tensorpack.dataflow import (
    DataFlowTerminated,
    MapData,
    MultiProcessMapAndBatchData,
    MultiProcessMapData,
    PrefetchData,
    WorkerDied,
)
from tensorpack.dataflow.processes import PrefetchOnGPUs
from tests.dataflow import process_functions as functions
from tests.dataflow.process_flows import closing, mixture
from tests.dataflow.process_functions import numbers
from tests.processes import LONG, in_fork

pytestmark = pytest.mark.usefixtures("own_streams")

# Each makes four numbers a pass.
INNER = [
    lambda: PrefetchData(numbers(4), 10, 1),
    lambda: MultiProcessMapData(numbers(4), 2, functions.same),
    lambda: MultiProcessMapAndBatchData(numbers(4), 2, functions.same, 2),
]


class TestProcesses:
    def test_they_are_started_once(self):
        with closing(mixture(numbers(5), 2)) as flow:
            assert multiprocessing.active_children() == []
            flow.start_processes()
            workers = set(multiprocessing.active_children())
            assert len(workers) == 2
            for use in flow.reset_state, flow.start_processes, lambda: [*flow, *flow]:
                use()
                assert set(multiprocessing.active_children()) == workers

    def test_they_are_started_again_where_all_have_failed(self):
        with closing(mixture(numbers(5), 2)) as flow:
            flow.start_processes()
            failed = multiprocessing.active_children()
            for worker in failed:
                worker.kill()
            with pytest.raises(WorkerDied):
                list(flow)
            flow.start_processes()
            assert len(set(multiprocessing.active_children()) - set(failed)) == 2

    def test_a_closed_flow_can_be_used_again(self):
        flow = mixture(numbers(5), 1)
        for _ in range(2):
            assert list(flow) == [[i] for i in range(5)]
            flow.close()
            flow.close()
            assert multiprocessing.active_children() == []
        flow.reset_state()
        assert list(flow) == [[i] for i in range(5)]
        flow.close()

    @pytest.mark.parametrize("method", ["fork", "forkserver"])
    def test_a_forked_copy_has_processes_of_its_own(self, method):
        def use():
            with pytest.raises(DataFlowTerminated, match="was begun by another process"):
                next(going)
            flow.close()  # not those of the original
            assert list(flow) == [[i] for i in range(9)]
            flow.close()

        with closing(mixture(numbers(9), 1, start_method=method)) as flow:
            going = iter(flow)
            assert next(going) == [0]
            assert in_fork(use)
            process = multiprocessing.get_context("fork").Process(target=use)
            process.start()
            process.join(LONG)
            assert process.exitcode == 0
            assert [next(going) for _ in range(8)] == [[i] for i in range(1, 9)]

    @pytest.mark.parametrize("make_inner", INNER)
    def test_a_flow_with_processes_inside_makes_its_data_in_each(self, make_inner):
        inner = MapData(make_inner(), functions.same)
        with closing(mixture(inner, 1)) as flow:
            for _ in range(2):
                found = [np.ravel(datapoint).tolist() for datapoint in flow]
                assert sum(found, []) == [0, 1, 2, 3]
                flow.reset_state()
            assert len(multiprocessing.active_children()) == 1

    def test_what_cannot_be_sent_to_them_is_named(self):
        ds = MapData(MapData(numbers(3), lambda dp: dp), functions.same)
        with closing(mixture(ds, start_method="forkserver")) as flow:
            for use in list, type(flow).reset_state:
                with pytest.raises(TypeError, match=r"^ds\.ds\.func cannot be sent"):
                    use(flow)
        assert multiprocessing.active_children() == []

    def test_what_holds_the_flow_does_not_keep_it(self):
        class Dataset:
            def __init__(self):
                self.flow = mixture(MapData(numbers(9), self.func), 1)

            def func(self, datapoint):
                return datapoint

        dataset = Dataset()
        assert next(iter(dataset.flow)) == [0]
        del dataset
        gc.collect()
        assert multiprocessing.active_children() == []

    def test_a_process_for_each_gpu(self, monkeypatch):
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        with closing(PrefetchOnGPUs(MapData(numbers(40), functions.gpus), [2, 5])) as flow:
            found = {gpu for _, gpu in itertools.chain(flow, flow, flow, flow)}
        assert found <= {"2", "5"} and found
        assert "CUDA_VISIBLE_DEVICES" not in os.environ
