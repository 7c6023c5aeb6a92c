"""Numbers that configs and trainers are given: what makes no sense is refused at once, by name."""

import numpy as np
import pytest

from tensorpack.dataflow import FakeData
from tensorpack.train import (
    AsyncMultiGPUTrainer,
    CollectiveTrainer,
    SyncMultiGPUTrainerParameterServer,
    SyncMultiGPUTrainerReplicated,
    TrainConfig,
)
from tensorpack.utils.cluster import Cluster


def option(name):
    return lambda value: TrainConfig(dataflow=FakeData([[4]], size=7), **{name: value})


KINDS = [SyncMultiGPUTrainerParameterServer, SyncMultiGPUTrainerReplicated, AsyncMultiGPUTrainer]
COUNTS = [(kind.__name__, "gpus", kind) for kind in KINDS]


@pytest.mark.parametrize(
    "owner, name, make", [("TrainConfig", "max_epoch", option("max_epoch")), *COUNTS]
)
def test_counts(owner, name, make):
    with pytest.raises(ValueError, match=f"{owner}.* {name} must be a whole number .* got 0"):
        make(0)
    make(np.int64(2))


def test_the_time_that_a_worker_waits_for_others():
    with pytest.raises(ValueError, match="^Coll.*: timeout must be a positive, finite .* got 0"):
        CollectiveTrainer(cluster=Cluster(("localhost:1", "localhost:2")), timeout=0)


@pytest.mark.parametrize("name", ["tower", "predict_tower"])
def test_lists_of_devices(name):
    with pytest.raises(TypeError, match=f"TrainConfig: {name} must be a list"):
        option(name)(2)
    with pytest.raises(ValueError, match=f"^{name} must be a non-empty list of different GPU ids"):
        option(name)([])
    assert getattr(option(name)((1, 0)), name) == [1, 0]
