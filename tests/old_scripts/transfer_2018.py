"""Weights of 2018: a dictionary in a .npy file, some frozen, some left out, then a checkpoint."""

import argparse
import os

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.tfutils import varreplace
from tensorpack.tfutils.sessinit import ChainInit, SaverRestore, get_model_loader
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.tfutils.varmanip import load_chkpt_vars


def write_weights(path):
    """What a converter of another framework wrote."""
    rng = np.random.RandomState(0)
    weights = {
        "fc1/W": rng.normal(scale=0.5, size=(6, 32)).astype("float32"),
        "fc1/b": np.zeros(32, "float32"),
        "fc8/W": rng.normal(size=(32, 1000)).astype("float32"),
    }
    np.save(path, weights)


def data(count):
    rng = np.random.RandomState(count)
    x = rng.normal(size=(count, 6)).astype("float32")
    y = (np.abs(x).sum(axis=1) > 4.7).astype("int32")
    return BatchData(DataFromList(list(zip(x, y))), 20)


class Model(ModelDesc):
    def inputs(self):
        return [tf.placeholder(tf.float32, (None, 6), "x"), tf.placeholder(tf.int32, (None,), "y")]

    def build_graph(self, x, y):
        with varreplace.freeze_variables(stop_gradient=False, skip_collection=True):
            x = FullyConnected("fc1", x, 32, activation=tf.nn.relu)
        x = FullyConnected("new", x, 16, activation=tf.nn.relu)
        logits = FullyConnected("out", x, 2)
        tf.argmax(logits, 1, name="predicted")
        cost = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=y)
        cost = tf.reduce_mean(cost, name="cost")
        add_moving_summary(cost)
        return cost

    def optimizer(self):
        return tf.train.AdamOptimizer(0.01)


def get_init(args):
    if args.load:
        return ChainInit([SaverRestore(args.load, ignore=["learning_rate"])])
    write_weights("converted.npy")
    weights = get_model_loader("converted.npy")
    return weights


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        config = PredictConfig(
            model=Model(),
            session_init=get_model_loader(args.load),
            input_names=["x"],
            output_names=["predicted"],
        )
        frozen = load_chkpt_vars(args.load)["fc1/W"]
        original = np.load("converted.npy", allow_pickle=True, encoding="latin1").item()["fc1/W"]
        np.testing.assert_array_equal(frozen, original)
        print("prediction:", OfflinePredictor(config)(np.ones((2, 6), "float32"))[0])
    else:
        logger.set_logger_dir(
            os.path.join("train_log", "transfer_2018" + ("-more" if args.load else "")), "d"
        )
        launch_train_with_config(
            TrainConfig(
                model=Model(),
                dataflow=data(400),
                callbacks=[ModelSaver(), InferenceRunner(data(60), ScalarStats("cost"))],
                session_init=get_init(args),
                max_epoch=args.epochs,
            ),
            SimpleTrainer(),
        )
