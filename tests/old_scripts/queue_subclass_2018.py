"""An input of 2018 with a queue of its own, which makes its placeholders from the descriptions."""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.input_source import QueueInput
from tensorpack.input_source.input_source import EnqueueThread
from tensorpack.tfutils.sessinit import get_model_loader
from tensorpack.tfutils.summary import add_moving_summary


class ShufflingQueueInput(QueueInput):
    """Keeps 40 datapoints at least, and takes a random one."""

    def __init__(self, ds):
        super(ShufflingQueueInput, self).__init__(ds)

    def _setup(self, inputs):
        self._input_placehdrs = [v.build_placeholder_reuse() for v in inputs]
        assert len(self._input_placehdrs) > 0, "Cannot use QueueInput with no inputs!"
        self.queue = tf.RandomShuffleQueue(
            80, 40, [x.dtype for x in self._input_placehdrs], name="shuffled_queue"
        )
        logger.info("Setting up the queue for CPU prefetching ...")
        self.thread = EnqueueThread(self.queue, self._inf_ds, self._input_placehdrs)


class Numbers(DataFlow):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __iter__(self):
        rng = np.random.RandomState(self.count)
        for _ in range(self.count):
            x = rng.normal(size=(16, 4)).astype("float32")
            label = np.zeros(16)
            label[x[:, 0] + x[:, 1] > 0] = 1
            yield [x, label]


class Model(ModelDesc):
    def inputs(self):
        return [tf.placeholder(tf.float32, [16, 4], "x"), tf.placeholder(tf.int32, [16], "label")]

    def build_graph(self, x, label):
        logits = FullyConnected("fc1", FullyConnected("fc0", x, 16, nl=tf.nn.relu), 2)
        tf.nn.softmax(logits, name="prob")
        cost = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label)
        cost = tf.reduce_mean(cost, name="cost")
        add_moving_summary(cost)
        return cost

    def optimizer(self):
        return tf.train.RMSPropOptimizer(0.01)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predictor = OfflinePredictor(
            PredictConfig(
                model=Model(),
                session_init=get_model_loader(args.load),
                input_names=["x"],
                output_names=["prob"],
            )
        )
        print("prediction:", predictor(np.ones((16, 4), "float32"))[0][0])
    else:
        logger.auto_set_dir()
        config = TrainConfig(
            model=Model(),
            data=ShufflingQueueInput(FixedSizeData(Numbers(100), "60")),
            callbacks=[
                ModelSaver(),
                InferenceRunner(FixedSizeData(Numbers(40), 20 / 2), ScalarStats("cost")),
            ],
            steps_per_epoch=60 // 2,
            session_init=get_model_loader(args.load) if args.load else None,
            max_epoch=args.epochs,
        )
        launch_train_with_config(config, SimpleTrainer())
