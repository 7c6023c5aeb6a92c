"""The trainers of 2017 with their input in the graph."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source import FeedInput, QueueInput
from tensorpack.train.simple import (
    FeedfreeTrainerBase,
    SimpleFeedfreeTrainer,
    SingleCostFeedfreeTrainer,
)
from tests.tiers import first_fast
from tests.train.test_simple import config, flow


class MyTrainer(FeedfreeTrainerBase):
    """Builds its own training op, as trainers of several costs do."""

    def _setup(self):
        super()._setup()
        cost = self.build_train_tower()
        self.train_op = self.config.model.get_optimizer().minimize(cost)


@pytest.mark.parametrize(
    "kind",
    first_fast([MyTrainer, SingleCostFeedfreeTrainer, SimpleFeedfreeTrainer]),
    ids=lambda k: k.__name__,
)
def test_learns(kind):
    look, options = config(data=QueueInput(flow()))
    kind(options).train()
    np.testing.assert_allclose(look.values, [3, 2], atol=0.1)


@pytest.mark.parametrize(
    "kind", [MyTrainer, SingleCostFeedfreeTrainer, SimpleFeedfreeTrainer], ids=lambda k: k.__name__
)
def test_refuses_data_that_must_be_fed(kind):
    _, options = config(data=FeedInput(flow()))
    with pytest.raises(TypeError, match="needs a FeedfreeInput"):
        kind(options)
    assert not tf.global_variables()
