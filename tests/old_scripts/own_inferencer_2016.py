"""Validation of 2016: inferencers with _datapoint and _get_output_tensors, flows with get_data."""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.callbacks.inference import Inferencer
from tensorpack.tfutils import summary
from tensorpack.tfutils.sessinit import SaverRestore
from tensorpack.tfutils.symbolic_functions import *
from tensorpack.utils.stats import BinaryStatistics


class Recall(Inferencer):
    def __init__(self, names):
        self.names = names

    def _get_output_tensors(self):
        return self.names

    def _before_inference(self):
        self.stat = BinaryStatistics()

    def _datapoint(self, outputs):
        predicted, label = outputs
        self.stat.feed(predicted > 0, label)

    def _after_inference(self):
        return {"recall": self.stat.recall, "positives": self.stat.nr_pos}


class Points(DataFlow):
    def __init__(self, count):
        self.count = count

    def size(self):
        return self.count

    def get_data(self):
        rng = get_rng(self)
        for _ in range(self.count):
            x = rng.uniform(-1, 1, size=3).astype("float32")
            yield [x, int(x.sum() > 0)]


class Model(ModelDesc):
    def _get_inputs(self):
        return [InputDesc(tf.float32, (None, 3), "x"), InputDesc(tf.int32, (None,), "label")]

    def _build_graph(self, inputs):
        x, label = inputs
        hidden = FullyConnected("fc0", x, out_dim=8, nl=tf.nn.tanh)
        summary.add_activation_summary(hidden)
        score = tf.squeeze(FullyConnected("fc1", hidden, out_dim=1, nl=tf.identity), [1])
        tf.cast(score > 0, tf.int32, name="predicted")
        loss = tf.nn.sigmoid_cross_entropy_with_logits(
            logits=score, labels=tf.cast(label, tf.float32)
        )
        self.cost = tf.reduce_mean(loss, name="cost")
        summary.add_moving_summary(self.cost)
        summary.add_param_summary((".*/W", ["mean", "rms", "sparsity"]))

    def _get_optimizer(self):
        lr = get_scalar_var("learning_rate", 0.02, summary=True)
        return tf.train.AdamOptimizer(lr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predictor = OfflinePredictor(PredictConfig(
            model=Model(), session_init=SaverRestore(args.load),
            input_names=["x"], output_names=["predicted"]))  # fmt: skip
        print("prediction:", predictor([[[1, 1, 1], [-1, -1, -1]]])[0])
    else:
        logger.auto_set_dir()
        ds_test = BatchData(Points(60), 20)
        config = TrainConfig(
            dataflow=BatchData(Points(300), 20),
            callbacks=[
                ModelSaver(),
                StatMonitorParamSetter("learning_rate", "val_cost", lambda x: x * 0.1, 1e-9, 5),
                InferenceRunner(ds_test, [
                    ScalarStats(["cost"], prefix="val"),
                    BinaryClassificationStats("predicted", "label"),
                    Recall(["predicted", "label"]),
                ]),
            ],
            model=Model(),
            max_epoch=args.epochs,
        )  # fmt: skip
        if args.load:
            config.session_init = SaverRestore(args.load)
        SimpleTrainer(config).train()
