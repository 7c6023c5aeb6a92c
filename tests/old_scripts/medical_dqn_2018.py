"""A search for a landmark in a volume, of 2018: an own environment, memory, evaluator."""

import argparse

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.tfutils.sessinit import get_model_loader
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.utils.stats import StatCounter

SIDE, VIEW, MOVES = (
    11,
    5,
    np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]),
)


class Volume(object):
    """A bright landmark in a dim volume; a move is worth how much nearer it comes."""

    def __init__(self, rng):
        self.rng = rng
        self.reset()

    def reset(self):
        self.landmark, self.at = self.rng.randint(2, SIDE - 2, size=(2, 3))
        grid = np.stack(np.mgrid[:SIDE, :SIDE, :SIDE], axis=3) + 0.0
        distance = np.linalg.norm(grid - self.landmark, axis=3)
        self.voxels = np.pad(np.exp(-distance / 3), VIEW // 2, mode="constant").astype("float32")
        self.age = 0

    def view(self):
        return self.voxels[tuple(slice(each, each + VIEW) for each in self.at)]

    def step(self, action):
        before = np.abs(self.at - self.landmark).sum()
        self.at = np.clip(self.at + MOVES[action], 0, SIDE - 1)
        after = np.abs(self.at - self.landmark).sum()
        self.age += 1
        return float(before - after), bool(after == 0 or self.age > 20)


class Memory(RNGDataFlow, Callback):
    def __init__(self, batch, size):
        self.batch = batch
        self.states = np.zeros((size, VIEW, VIEW, VIEW), "float32")
        self.actions = np.zeros(size, "int64")
        self.rewards = np.zeros(size)
        self.filled = 0
        self.exploration = 1.0

    def _setup_graph(self):
        self.predict = self.trainer.get_predictor(["state"], ["Qvalue"])

    def play(self):
        if self.rng.rand() < self.exploration:
            action = self.rng.randint(len(MOVES))
        else:
            action = self.predict(self.volume.view()[None])[0][0].argmax()
        place = self.filled % len(self.states)
        self.states[place], self.actions[place] = self.volume.view(), action
        self.rewards[place], over = self.volume.step(action)
        self.filled += 1
        if over:
            self.volume.reset()

    def __iter__(self):
        self.volume = Volume(self.rng)
        while self.filled < 100:
            self.play()
        while True:
            for _ in range(4):
                self.play()
            drawn = self.rng.randint(min(self.filled, len(self.states)), size=self.batch)
            yield [self.states[drawn], self.actions[drawn], self.rewards[drawn].astype("float32")]


class Evaluator(Callback):
    def _setup_graph(self):
        self.predict = self.trainer.get_predictor(["state"], ["Qvalue"])

    def _trigger(self):
        stat, volume = StatCounter(), Volume(np.random.RandomState(1))
        for _ in range(5):
            volume.reset()
            over = False
            while not over:
                _, over = volume.step(self.predict(volume.view()[None])[0][0].argmax())
            stat.feed(np.linalg.norm(volume.at - volume.landmark))
        self.trainer.monitors.put_scalar("mean_distance", stat.average)
        self.trainer.monitors.put_scalar("max_distance", stat.max)


class Model(ModelDesc):
    def inputs(self):
        return [tf.placeholder(tf.float32, (None, VIEW, VIEW, VIEW), "state"),
                tf.placeholder(tf.int64, (None,), "action"),
                tf.placeholder(tf.float32, (None,), "reward")]  # fmt: skip

    def build_graph(self, state, action, reward):
        x = tf.layers.conv3d(tf.expand_dims(state, 4), 8, 3, activation=tf.nn.relu, name="conv0")
        x = FullyConnected("fc0", x, 32, activation=tf.nn.leaky_relu)
        value = tf.identity(FullyConnected("fct", x, len(MOVES)), name="Qvalue")
        if not self.training:
            return None
        chosen = tf.reduce_sum(value * tf.one_hot(action, len(MOVES)), 1)
        cost = tf.losses.huber_loss(reward, chosen, reduction=tf.losses.Reduction.MEAN)
        cost = tf.identity(cost, name="cost")
        add_moving_summary(cost)
        return cost

    def optimizer(self):
        lr = tf.get_variable("learning_rate", initializer=3e-3, trainable=False)
        return optimizer.apply_grad_processors(
            tf.train.AdamOptimizer(lr), [gradproc.GlobalNormClip(10), gradproc.SummaryGradient()]
        )


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
            input_names=["state"],
            output_names=["Qvalue"],
        )
        volume = Volume(np.random.RandomState(0))
        print("prediction:", OfflinePredictor(config)(volume.view()[None])[0].round(1))
    else:
        logger.auto_set_dir()
        memory = Memory(16, 400)
        config = AutoResumeTrainConfig(
            model=Model(),
            data=QueueInput(memory),
            callbacks=[
                ModelSaver(),
                memory,
                PeriodicTrigger(Evaluator(), every_k_epochs=2),
                HyperParamSetterWithFunc(
                    ObjAttrParam(memory, "exploration"), lambda epoch, value: value * 0.5
                ),
            ],
            steps_per_epoch=30,
            session_init=get_model_loader(args.load) if args.load else None,
            max_epoch=args.epochs,
        )
        launch_train_with_config(config, SimpleTrainer())
