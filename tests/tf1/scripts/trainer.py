"""A trainer of tensorpack around a model written with tf.layers and the 2017 spelling."""

import sys

import numpy as np
import tensorflow as tf

from tensorpack import (
    Callback,
    DataFlow,
    InputDesc,
    ModelDesc,
    QueueInputTrainer,
    TrainConfig,
    logger,
)
from tensorpack.tfutils.summary import add_moving_summary


class Data(DataFlow):
    def get_data(self):
        rng = np.random.RandomState(0)
        while True:
            x = rng.uniform(-1, 1, size=(16, 1)).astype("float32")
            yield [x, 3 * x + 2]


class Model(ModelDesc):
    def _get_inputs(self):
        return [InputDesc(tf.float32, [None, 1], "x"), InputDesc(tf.float32, [None, 1], "y")]

    def _build_graph(self, inputs):
        x, y = inputs
        self.cost = tf.reduce_mean(tf.square(tf.layers.dense(x, 1, name="fc") - y), name="cost")
        add_moving_summary(self.cost)

    def _get_optimizer(self):
        return tf.train.AdamOptimizer(0.1)


class Close(Callback):
    def _trigger_epoch(self):
        kernel, bias = self.trainer.sess.run(["fc/kernel:0", "fc/bias:0"])
        assert abs(kernel[0, 0] - 3) < 0.2 and abs(bias[0] - 2) < 0.2, (kernel, bias)


if __name__ == "__main__":
    logger.set_logger_dir(sys.argv[1], action="n")
    config = TrainConfig(
        model=Model(), dataflow=Data(), callbacks=[Close()], steps_per_epoch=100, max_epoch=1
    )
    QueueInputTrainer(config).train()
