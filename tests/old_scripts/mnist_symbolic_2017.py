#!/usr/bin/env python
"""MNIST of 2017 in plain TensorFlow: two tasks, the symbolic functions, a saliency map, a queue."""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.tfutils import symbolic_functions as symbf
from tensorpack.tfutils import summary
from tensorpack.tfutils.gradproc import *
from tensorpack.tfutils.symbolic_functions import get_scalar_var

SIZE = 16
RNG = np.random.RandomState(7)
STARS = RNG.randint(2, SIZE - 2, size=(10, 4, 2))  # each digit is a constellation


def get_data(train_or_test):
    isTrain = train_or_test == "train"
    rng = np.random.RandomState(1 if isTrain else 2)
    grid = np.mgrid[:SIZE, :SIZE].transpose(1, 2, 0)
    datapoints = []
    for _ in range(480 if isTrain else 96):
        label = rng.randint(10)
        stars = STARS[label] + rng.normal(0, 0.4, size=(4, 2))
        distance = ((grid[:, :, None] - stars) ** 2).sum(axis=3)
        datapoints.append([np.exp(-distance / 3.0).max(axis=2).astype("float32"), label])
    ds = DataFromList(datapoints, shuffle=isTrain)
    return BatchData(ds, 32, remainder=not isTrain)


def dense(name, x, out_dim):
    in_dim = x.get_shape().as_list()[1]
    with tf.variable_scope(name):
        W = tf.get_variable(
            "W", [in_dim, out_dim], initializer=tf.random_normal_initializer(0, 0.1)
        )
        b = tf.get_variable("b", [out_dim], initializer=tf.constant_initializer())
        return tf.nn.xw_plus_b(x, W, b)


class Model(ModelDesc):
    def _get_inputs(self):
        return [
            InputDesc(tf.float32, [None, SIZE, SIZE], "input"),
            InputDesc(tf.int64, [None], "label"),
        ]

    def _build_graph(self, inputs):
        image, label = inputs
        with tf.variable_scope("conv"):
            kernel = tf.get_variable("W", [3, 3, 1, 8])
            l = tf.nn.conv2d(tf.expand_dims(image, 3), kernel, [1, 2, 2, 1], padding="SAME")
        summary.add_activation_summary(l)
        hidden = tf.nn.tanh(dense("fc0", symbf.batch_flatten(tf.nn.relu(l)), 32), name="code")
        logits = dense("logits", hidden, 10)
        restored = tf.sigmoid(dense("restore", hidden, SIZE * SIZE))
        restored = tf.reshape(restored, [-1, SIZE, SIZE], name="restored")
        tf.nn.softmax(logits, name="prob")
        symbf.saliency_map(logits, image, name="saliency")

        error = tf.reduce_mean(symbf.prediction_incorrect(logits, label), name="error_rate")
        top2 = tf.reduce_mean(
            symbf.prediction_incorrect(logits, label, topk=2, name="incorrect-top2"), name="top2"
        )
        accuracy = symbf.accuracy(logits, label, name="accuracy")
        xent = tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=label)
        xent = tf.reduce_mean(xent, name="xent")
        ink = symbf.class_balanced_cross_entropy(restored, tf.round(image), name="ink")
        huber = symbf.huber_loss(symbf.flatten(restored - image), delta=0.5)
        huber = tf.reduce_mean(huber, name="huber")
        psnr = symbf.psnr(restored, image, maxp=1)
        hidden_rms = symbf.rms(hidden)
        self.cost = tf.add_n([xent, huber, 0.1 * ink], name="cost")
        for each in [error, top2, accuracy, xent, ink, huber, psnr, hidden_rms, self.cost]:
            summary.add_moving_summary(each)
        summary.add_param_summary(("fc0/W", ["histogram", "sparsity"]))

    def _get_optimizer(self):
        lr = get_scalar_var("learning_rate", 1e-2, summary=True)
        opt = tf.train.MomentumOptimizer(lr, 0.9)
        return optimizer.apply_grad_processors(
            opt, [GlobalNormClip(5), ScaleGradient([("restore/.*", 2.0)]), SummaryGradient()]
        )


def get_config(epochs):
    logger.auto_set_dir()
    dataset_train, dataset_test = get_data("train"), get_data("test")
    names = ["cost", "error_rate", "top2", "psnr"]
    return TrainConfig(
        model=Model(),
        dataflow=dataset_train,
        callbacks=[
            ModelSaver(),
            InferenceRunner(
                dataset_test,
                [ScalarStats(names), ClassificationError("incorrect-top2", "val_top2")],
            ),
            MinSaver("val_top2"),
        ],
        max_epoch=epochs,
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--load", help="load model")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predict = OfflinePredictor(
            PredictConfig(
                model=Model(),
                session_init=get_model_loader(args.load),
                input_names=["input"],
                output_names=["prob", "saliency"],
            )
        )
        prob, saliency = predict([np.ones((1, SIZE, SIZE), "float32")])
        print("prediction:", prob[0].argmax(), "looks at", np.abs(saliency).argmax())
    else:
        config = get_config(args.epochs)
        if args.load:
            config.session_init = get_model_loader(args.load)
        QueueInputTrainer(config).train()
