"""Callbacks of 2016: one predicts and draws, one counts, one stops the training."""

import argparse
import operator

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.callbacks.base import Callback, Triggerable
from tensorpack.tfutils.sessinit import get_model_loader
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.utils.stats import StatCounter
from tensorpack.utils.viz import stack_patches


class Painting(Callback):
    """Draws a few inputs beside what the model makes of them."""

    def __init__(self, images):
        self.images = images

    def _setup_graph(self):
        self.pred = self.trainer.get_predictor(["input"], ["recovered"])

    def _before_train(self):
        logger.info("Painting before the training ...")

    def _trigger_epoch(self):
        recovered = self.pred(self.images)[0]
        both = np.concatenate([self.images, np.clip(recovered, 0, 1)], axis=2)[..., np.newaxis]
        picture = stack_patches((both * 255).astype("uint8"), nr_row=2, nr_col=2, pad=True)
        self.trainer.monitors.put_image("recovered", picture)


class Counting(Triggerable):
    def _setup_graph(self):
        self.fetches = [tf.get_default_graph().get_tensor_by_name("mean_square:0")]
        self.stat = StatCounter()

    def _before_run(self, _):
        return tf.train.SessionRunArgs(fetches=self.fetches)

    def _after_run(self, _, values):
        self.stat.feed(values.results[0])

    def _trigger_epoch(self):
        total = self.stat.sum.item()
        assert isinstance(total, float) and isinstance(self.stat.average, np.floating)
        self.trainer.monitors.put_scalar("cost_of_epoch", total)
        self.stat.reset()


class StopWhen(Callback):
    def __init__(self, name, value):
        self.name, self.value = name, value

    def _trigger_epoch(self):
        if operator.lt(self.trainer.monitors.get_latest(self.name), self.value):
            raise StopTraining()


def images(count):
    rng = np.random.RandomState(count)
    ramp = np.linspace(0, 1, 8)
    return [[(ramp[:, None] * a + ramp * b).astype("float32") / 2] for a, b in rng.rand(count, 2)]


class Model(ModelDesc):
    def _get_input_vars(self):
        return [InputVar(tf.float32, (None, 8, 8), "input")]

    def _get_inputs(self):
        return self._get_input_vars()

    def _build_graph(self, input_vars):
        image = input_vars[0]
        with argscope(FullyConnected, nl=tf.nn.relu):
            code = FullyConnected("encode", image, out_dim=6)
        back = FullyConnected("decode", code, out_dim=64, nl=tf.identity)
        back = tf.reshape(back, [-1, 8, 8], name="recovered")
        self.cost = tf.reduce_mean(tf.square(back - image), name="mean_square")
        add_moving_summary(self.cost)

    def _get_optimizer(self):
        return tf.train.AdamOptimizer(0.01)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predictor = get_predict_func(PredictConfig(
            model=Model(), session_init=get_model_loader(args.load),
            input_names=["input"], output_names=["recovered"]))  # fmt: skip
        print("prediction:", predictor([images(1)[0]])[0].shape)
    else:
        logger.auto_set_dir()
        config = TrainConfig(
            model=Model(),
            dataflow=BatchData(DataFromList(images(80)), 8),
            callbacks=[
                ModelSaver(),
                Counting(),
                Painting(np.array([image for (image,) in images(4)])),
                InferenceRunner(
                    BatchData(DataFromList(images(16)), 8), [ScalarStats("mean_square")]
                ),
                StopWhen("cost_of_epoch", 1e-9),
            ],
            max_epoch=args.epochs,
        )
        if args.load:
            config.session_init = get_model_loader(args.load)
        QueueInputTrainer(config).train()
