"""A program of Horovod's users: asks it for the role of the process, and leaves the rest to us."""

import sys

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from tensorpack import (
    Callback,
    DataFromList,
    HorovodTrainer,
    ModelDesc,
    RepeatedData,
    TrainConfig,
    launch_train_with_config,
    logger,
)

hvd.init()
if hvd.rank() == 0:
    logger.set_logger_dir(sys.argv[1])


class Model(ModelDesc):
    def inputs(self):
        return [tf.TensorSpec([None], tf.float32, "x")]

    def build_graph(self, x):
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        return tf.reduce_mean(w * x, name="cost")

    def optimizer(self):
        return tf.train.GradientDescentOptimizer(1.0)


class Tell(Callback):
    _chief_only = False

    def _after_train(self):
        (w,) = self.trainer.sess.run(tf.trainable_variables("w"))
        logger.info(f"worker {hvd.rank()} ({hvd.local_rank()}) of {hvd.size()}: {w}")


# Two steps; a gradient is the mean of 1 and 3, the examples of the workers.
data = DataFromList([[np.full(4, 1.0 + 2 * hvd.rank(), "float32")]], shuffle=False)
config = TrainConfig(
    model=Model(),
    dataflow=RepeatedData(data, -1),
    callbacks=[Tell()],
    steps_per_epoch=2,
    max_epoch=1,
)
launch_train_with_config(config, HorovodTrainer())
