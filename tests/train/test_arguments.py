"""Numbers that configs and trainers are given: what makes no sense is refused at once, by name."""

import numpy as np
import pytest

from tensorpack.dataflow import FakeData
from tensorpack.train import (
    AsyncMultiGPUTrainer,
    CollectiveTrainer,
    DistributedTrainerParameterServer,
    DistributedTrainerReplicated,
    SyncMultiGPUTrainerParameterServer,
    SyncMultiGPUTrainerReplicated,
    TrainConfig,
)


def option(name):
    return lambda value: TrainConfig(dataflow=FakeData([[4]], size=7), **{name: value})


COUNTS = [("TrainConfig", name, option(name)) for name in ("starting_epoch", "max_epoch")]
COUNTS += [("TrainConfig", "nr_tower", option("nr_tower"))]
COUNTS += [
    (kind.__name__, "gpus", kind)
    for kind in (
        SyncMultiGPUTrainerParameterServer,
        SyncMultiGPUTrainerReplicated,
        AsyncMultiGPUTrainer,
    )
]


@pytest.mark.parametrize("owner, name, make", COUNTS)
def test_counts(owner, name, make):
    with pytest.raises(ValueError, match=f"{owner}.* {name} must be a whole number .* got 0"):
        make(0)
    make(np.int64(2))


@pytest.mark.parametrize("name", ["starting_epoch", "max_epoch", "nr_tower", "steps_per_epoch"])
def test_a_text_is_no_count(name):
    with pytest.raises(TypeError, match=f"^TrainConfig: {name} must be a number"):
        option(name)("3")


@pytest.mark.parametrize(
    "kind",
    [CollectiveTrainer, DistributedTrainerParameterServer, DistributedTrainerReplicated],
)
def test_the_time_after_which_a_process_counts_as_lost(kind):
    for number in 0, -1, float("inf"), float("nan"):
        said = f"^{kind.__name__}.*: timeout must be a positive, finite .* got {number}"
        with pytest.raises(ValueError, match=said):
            kind(None, timeout=number)


@pytest.mark.parametrize("name", ["tower", "predict_tower"])
def test_lists_of_devices(name):
    with pytest.raises(TypeError, match=f"TrainConfig: {name} must be a list"):
        option(name)(2)
    with pytest.raises(ValueError, match=f"^{name} must be a non-empty list of different GPU ids"):
        option(name)([])
    assert getattr(option(name)((1, 0)), name) == [1, 0]
