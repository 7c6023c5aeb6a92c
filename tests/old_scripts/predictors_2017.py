"""All the predictors of 2017 on one model: of a dataset, of several towers, in processes."""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.predict import (
    DatasetPredictorBase,
    MultiProcessDatasetPredictor,
    MultiTowerOfflinePredictor,
    SimpleDatasetPredictor,
)
from tensorpack.tfutils.sessinit import get_model_loader
from tensorpack.tfutils.summary import add_moving_summary


class Sums(RNGDataFlow):
    """Two numbers and their sum."""

    def __init__(self, count):
        self.count = count

    def size(self):
        return self.count

    def get_data(self):
        for _ in range(self.count):
            x = self.rng.uniform(-1, 1, size=(8, 2)).astype("float32")
            yield [x, x.sum(axis=1)]


class Model(ModelDesc):
    def _get_inputs(self):
        return [InputDesc(tf.float32, (None, 2), "x"), InputDesc(tf.float32, (None,), "y")]

    def _build_graph(self, inputs):
        x, y = inputs
        found = tf.squeeze(FullyConnected("fc", x, 1, nl=tf.identity), [1], name="sum")
        self.cost = tf.reduce_mean(tf.square(found - y), name="cost")
        add_moving_summary(self.cost)

    def _get_optimizer(self):
        return tf.train.GradientDescentOptimizer(0.1)


def predict(path):
    config = PredictConfig(
        model=Model(),
        session_init=get_model_loader(path),
        input_names=["x"],
        output_names=["sum"],
        return_input=True,
    )
    towers = MultiTowerOfflinePredictor(
        PredictConfig(
            model=Model(),
            session_init=get_model_loader(path),
            input_names=["x"],
            output_names=["sum"],
        ),
        [0, 0],
    )  # fmt: skip
    x = np.ones((3, 2), "float32")
    results = [predictor([x])[0] for predictor in towers.get_predictors()]
    np.testing.assert_allclose(results[0], results[1])

    single = SimpleDatasetPredictor(
        PredictConfig(
            model=Model(),
            session_init=get_model_loader(path),
            input_names=["x"],
            output_names=["sum"],
        ),
        MapData(Sums(3), lambda dp: dp[:1]),
    )  # fmt: skip
    assert isinstance(single, DatasetPredictorBase)
    assert len(single.get_all_result()) == 3
    assert issubclass(MultiProcessDatasetPredictor, DatasetPredictorBase)
    inputs, outputs = OfflinePredictor(config)([x])
    np.testing.assert_array_equal(inputs[0], x)
    print("prediction:", outputs[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predict(args.load)
    else:
        logger.auto_set_dir()
        SimpleTrainer(TrainConfig(
            model=Model(),
            dataflow=Sums(50),
            callbacks=[ModelSaver(), InferenceRunner(Sums(5), ScalarStats("cost"))],
            session_init=get_model_loader(args.load) if args.load else None,
            max_epoch=args.epochs,
        )).train()  # fmt: skip
