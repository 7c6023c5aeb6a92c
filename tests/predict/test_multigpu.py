"""Several devices, one set of weights: virtual CPU devices stand for GPUs."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.predict import (
    DataParallelOfflinePredictor,
    MultiThreadAsyncPredictor,
    MultiTowerOfflinePredictor,
)
from tests.computing import run_nodes
from tests.predict import predicting

TWO_CPUS = tf.ConfigProto(device_count={"CPU": 2}, allow_soft_placement=True)
X = np.float32([1, 2])


@pytest.fixture
def config():
    return predicting.config(session_config=TWO_CPUS)


def test_each_tower_predicts_on_its_device_with_the_same_weights(config):
    with MultiTowerOfflinePredictor(config, ["/cpu:0", "/cpu:1"]) as predictor:
        one, other = predictor.get_predictors()
        assert predictor.get_predictor(3) == [one, other, one]
        for tower in (predictor, one, other):
            np.testing.assert_array_equal(tower(X), [[4, 7]])
        assert len(predictor.graph.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)) == 2
        for number, tower in enumerate([one, other]):
            assert tower.output_tensors[0].op.device == f"/device:CPU:{number}"


def test_towers_serve_single_requests(config):
    with MultiTowerOfflinePredictor(config, ["/cpu:0", "/cpu:1"]) as towers:
        with MultiThreadAsyncPredictor(towers.get_predictors(), batch_size=2) as predictor:
            futures = [predictor.put_task([number]) for number in range(9)]
            assert [future.result(5)[0] for future in futures] == [3 * i + 1 for i in range(9)]


def test_data_parallel_takes_and_returns_what_belongs_to_each_tower(config):
    with DataParallelOfflinePredictor(config, ["/cpu:0", "/cpu:1"]) as predictor:
        np.testing.assert_array_equal(predictor(X, 2 * X), [[4, 7], [7, 13]])
        np.testing.assert_array_equal(predictor([X, 2 * X]), [[4, 7], [7, 13]])
        with pytest.raises(ValueError, match="takes 2 arrays"):
            predictor(X)
        feed = dict.fromkeys(predictor.input_tensors, X)
        nodes = run_nodes(predictor.sess, predictor.output_tensors, feed)[1]
        used = {node.device.rpartition("device:")[2] for node in nodes if "predicted" in node.name}
        assert used == {"CPU:0", "CPU:1"}
