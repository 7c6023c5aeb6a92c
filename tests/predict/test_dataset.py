"""A prediction for each datapoint, in this process and in several."""

import json

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.predict import (
    DatasetPredictorBase,
    MultiProcessDatasetPredictor,
    PredictConfig,
    SimpleDatasetPredictor,
)
from tensorpack.predict.dataset import _environments
from tests.harness import Child, Zygote
from tests.predict.predicting import config, flow, values


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs a case of `predicting.py` in a process without a session; returns what it returns."""
    with Zygote() as zygote:

        def run(case):
            child = Child(case, zygote=zygote, module="tests.predict.predicting")
            assert child.end(60) == 0, child.output
            return json.loads(child.output.rpartition("result ")[2])

        yield run


def test_one_process(capfd, monkeypatch):
    monkeypatch.setenv("TENSORPACK_PROGRESS_REFRESH", "0.001")
    with SimpleDatasetPredictor(config(), flow(3)) as predictor:
        assert values(predictor.get_result()) == [1, 4, 7]
        assert values(predictor.get_all_result()) == [1, 4, 7]
    assert "3/3" in capfd.readouterr().err
    with pytest.raises(RuntimeError, match="closed"):
        predictor.get_all_result()


def test_datapoints_may_be_dicts():
    dicts = DataFromList([{"more": 1, "x": np.float32([i])} for i in range(2)], shuffle=False)
    with SimpleDatasetPredictor(config(), dicts) as predictor:
        assert values(predictor.get_result()) == [1, 4]


def test_a_subclass_of_a_user_overrides_get_result():
    class Twice(DatasetPredictorBase):
        def get_result(self):
            for datapoint in self.dataset:
                yield 2 * datapoint[0]

    with Twice(config(), DataFromList([[1], [2]], shuffle=False)) as predictor:
        assert predictor.get_all_result() == [2, 4]
    with pytest.raises(NotImplementedError, match="must override get_result"):
        DatasetPredictorBase(config(), flow(1)).get_all_result()


@pytest.mark.slow
def test_a_dataset_may_apply_a_local_function_in_processes(run):
    assert run("forked_dataset") == [1, 10, 19, 28]


@pytest.mark.slow
def test_several_processes_keep_the_order(run):
    expected = [3 * i + 1 for i in range(20)]
    assert run("ordered") == {"started": 2, "passes": [expected, expected], "left": 0}
    assert run("unordered") == expected


@pytest.mark.slow
def test_errors_of_processes_are_raised(run):
    assert "'x:0': the model takes float32 [None], the call gave float32 [1, 1]" in run("wrong")
    assert run("dies").startswith("WorkerDied: ") and "SIGKILL" in run("dies")


@pytest.mark.one_row
@pytest.mark.slow
def test_workers_of_2017(run):
    assert run("queues") == {"codes": [0, 0], "results": [1, 4, 7, 10]}


def test_a_config_that_cannot_be_sent_is_named():
    local = PredictConfig(
        tower_func=lambda x: tf.identity(x, "out"),
        input_signature=[tf.TensorSpec([None], tf.float32, "x")],
        output_names=["out"],
    )
    with tf.Session():  # no process can be forked any more
        with pytest.raises(TypeError, match="tower_func.* cannot be sent to a process"):
            MultiProcessDatasetPredictor(local, flow(1), 1)


def test_what_processes_see_of_the_gpus(monkeypatch):
    assert _environments(2, use_gpu=False) == [{"CUDA_VISIBLE_DEVICES": ""}] * 2
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    seen = [environ["CUDA_VISIBLE_DEVICES"] for environ in _environments(3, use_gpu=True)]
    assert seen == ["5", "7", "5"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert _environments(3, use_gpu=True) is None
