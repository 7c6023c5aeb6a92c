"""Two towers of 2019 that share their variables, with staging."""

import argparse

import numpy as np

from tensorpack import *
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import BatchData, DataFromList
from tensorpack.tfutils.summary import add_moving_summary


def data(count):
    rng = np.random.RandomState(count)
    x = rng.uniform(-1, 1, size=(count, 2)).astype("float32")
    return BatchData(DataFromList([[each, (each**2).sum()] for each in x]), 16)


class Model(ModelDesc):
    def inputs(self):
        return [tf.TensorSpec([None, 2], tf.float32, "x"), tf.TensorSpec([None], tf.float32, "y")]

    def build_graph(self, x, y):
        with argscope(FullyConnected, units=24, activation=tf.nn.relu):
            hidden = BatchNorm("bn", FullyConnected("fc0", x))
            hidden = FullyConnected("fc1", hidden)
        found = tf.squeeze(FullyConnected("out", hidden, 1), 1, name="found")
        cost = tf.reduce_mean(tf.square(found - y), name="cost")
        add_moving_summary(cost)
        return cost

    def optimizer(self):
        lr = tf.get_variable("learning_rate", initializer=5e-3, trainable=False)
        tf.summary.scalar("learning_rate-summary", lr)
        opt = tf.train.AdamOptimizer(lr)
        return optimizer.apply_grad_processors(opt, [gradproc.GlobalNormClip(5)])


def train(args):
    logger.auto_set_dir()
    towers = list(range(get_num_gpu())) or [0, 1]
    config = TrainConfig(
        model=Model(),
        data=StagingInput(QueueInput(data(640))),
        callbacks=[
            ModelSaver(),
            ThroughputTracker(16 * len(towers)),
            DataParallelInferenceRunner(data(96), ScalarStats("cost"), [0]),
            RunUpdateOps(),
            HyperParamSetterWithFunc("learning_rate", lambda epoch, value: value * 0.9),
        ],
        session_init=SmartInit(args.load),
        steps_per_epoch=20,
        max_epoch=args.epochs,
    )
    trainer = SyncMultiGPUTrainerParameterServer(towers, ps_device="cpu")
    launch_train_with_config(config, trainer)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        config = PredictConfig(
            model=Model(),
            session_init=SmartInit(args.load),
            input_names=["x"],
            output_names=["found"],
        )
        predictor = MultiTowerOfflinePredictor(config, [0])
        print("prediction:", predictor(np.array([[0, 0], [1, 1]], "float32"))[0].round(1))
    else:
        train(args)
