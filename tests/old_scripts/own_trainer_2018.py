"""A trainer of 2018 with steps of its own: two updates of one part for each of the other."""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.tfutils.sessinit import get_model_loader
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.tfutils.tower import TowerFuncWrapper
from tensorpack.train.tower import TowerTrainer


class Model(ModelDescBase):
    """Finds a code of four numbers, and a plane through the code that tells which side."""

    def inputs(self):
        return [
            tf.placeholder(tf.float32, (None, 8), "x"),
            tf.placeholder(tf.float32, (None,), "y"),
        ]

    def build_graph(self, x, y):
        with tf.variable_scope("code"):
            code = FullyConnected("fc", x, 4, activation=tf.tanh)
            back = FullyConnected("back", code, 8)
        with tf.variable_scope("plane"):
            side = tf.squeeze(FullyConnected("fc", tf.stop_gradient(code), 1), 1)
        tf.sigmoid(side, name="side")
        self.code_loss = tf.reduce_mean(tf.square(back - x), name="code_loss")
        loss = tf.nn.sigmoid_cross_entropy_with_logits(logits=side, labels=y)
        self.side_loss = tf.reduce_mean(loss, name="side_loss")
        add_moving_summary(self.code_loss, self.side_loss)

    def collect(self, scope):
        return tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope)


class AlternatingTrainer(TowerTrainer):
    def __init__(self, input, model):
        super(AlternatingTrainer, self).__init__()
        inputs = model.get_inputs_desc() if hasattr(model, "get_inputs_desc") else model.inputs()
        cbs = input.setup(inputs)
        self.register_callback(cbs)
        self.tower_func = TowerFuncWrapper(model.build_graph, inputs)
        with TowerContext("", is_training=True):
            self.tower_func(*input.get_input_tensors())
        opt = tf.train.AdamOptimizer(0.01)
        self.code_step = opt.minimize(
            model.code_loss, var_list=model.collect("code"), name="code_step"
        )
        self.side_step = opt.minimize(
            model.side_loss, var_list=model.collect("plane"), name="side_step"
        )
        self.train_op = self.side_step

    def run_step(self):
        for _ in range(2):
            self.hooked_sess.run(self.code_step)
        self.hooked_sess.run(self.train_op)


def data(count):
    rng = np.random.RandomState(count)
    x = rng.normal(size=(count, 8)).astype("float32")
    return BatchData(DataFromList([[each, float(each[0] > 0)] for each in x]), 20)


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
                output_names=["side"],
            )
        )
        print("prediction:", predictor(np.eye(8, dtype="float32"))[0].round(2))
    else:
        logger.auto_set_dir()
        AlternatingTrainer(QueueInput(RepeatedData(data(200), -1)), Model()).train_with_defaults(
            callbacks=[
                ModelSaver(),
                InferenceRunner(data(40), ScalarStats(["code_loss", "side_loss"])),
            ],
            steps_per_epoch=30,
            max_epoch=args.epochs,
            session_init=get_model_loader(args.load) if args.load else None,
        )
