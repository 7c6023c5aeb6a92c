"""Pairs of 2017: one net for both images by reuse, a contrastive cost, an embedding."""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.tfutils import symbolic_functions as symbf
from tensorpack.tfutils.scope_utils import auto_reuse_variable_scope
from tensorpack.tfutils.sessinit import get_model_loader
from tensorpack.tfutils.summary import add_moving_summary


class Pairs(RNGDataFlow):
    """Two rows of eight numbers, and 1 where both come from the same of four centres."""

    def __init__(self, count):
        self.count = count
        self.centres = np.random.RandomState(0).normal(size=(4, 8)) * 2

    def size(self):
        return self.count

    def get_data(self):
        for number in range(self.count):
            first = self.rng.randint(4)
            second = first if number % 2 else (first + self.rng.randint(1, 4)) % 4
            rows = [self.centres[each] + self.rng.normal(size=8) for each in (first, second)]
            yield [rows[0].astype("float32"), rows[1].astype("float32"), number % 2]


class Model(ModelDesc):
    def _get_inputs(self):
        return [
            InputDesc(tf.float32, (None, 8), "left"),
            InputDesc(tf.float32, (None, 8), "right"),
            InputDesc(tf.int32, (None,), "same"),
        ]

    @auto_reuse_variable_scope
    def embed(self, x, nfeatures=2):
        with argscope(FullyConnected, nl=tf.nn.relu):
            net = FullyConnected("fc1", x, 32)
            return FullyConnected("fc2", net, nfeatures, nl=tf.identity)

    def _build_graph(self, inputs):
        left, right, same = inputs
        with tf.variable_scope("net"):
            left_embedding = self.embed(left)
        with tf.variable_scope("net"):
            right_embedding = self.embed(right)
        tf.identity(left_embedding, name="emb")
        cost, positive, negative = symbf.contrastive_loss(
            left_embedding, right_embedding, same, 2.0, extra=True, scope="loss"
        )
        self.cost = tf.identity(cost, name="cost")
        add_moving_summary(positive, negative, self.cost)
        weights = [each.op.name for each in tf.trainable_variables()]
        assert sorted(weights) == ["net/fc1/W", "net/fc1/b", "net/fc2/W", "net/fc2/b"], weights

    def _get_optimizer(self):
        lr = symbf.get_scalar_var("learning_rate", 5e-3, summary=True)
        return tf.train.AdamOptimizer(lr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predictor = OfflinePredictor(PredictConfig(
            session_init=get_model_loader(args.load), model=Model(),
            input_names=["left"], output_names=["emb"]))  # fmt: skip
        print("prediction:", predictor([Pairs(0).centres.astype("float32")])[0])
    else:
        logger.auto_set_dir()
        QueueInputTrainer(TrainConfig(
            model=Model(),
            dataflow=BatchData(Pairs(800), 20),
            callbacks=[
                ModelSaver(),
                InferenceRunner(BatchData(Pairs(100), 20), ScalarStats("cost")),
                ScheduledHyperParamSetter("learning_rate", [(10, 1e-5), (20, 1e-6)]),
            ],
            session_init=get_model_loader(args.load) if args.load else None,
            max_epoch=args.epochs,
        )).train()  # fmt: skip
