"""Policy gradients of 2018: episodes are played between epochs and come through a queue."""

import argparse

import numpy as np
import tensorflow as tf
from six.moves import queue

from tensorpack import *
from tensorpack.tfutils.sessinit import get_model_loader
from tensorpack.tfutils.summary import add_moving_summary


class Bandit(object):
    """The arm that the state names is worth 1."""

    def __init__(self, seed):
        self.rng = np.random.RandomState(seed)

    def state(self):
        return np.eye(4, dtype="float32")[self.rng.randint(4)]


class Player(Callback):
    def __init__(self, q, steps, batch):
        self.queue, self.count = q, steps * batch

    def _setup_graph(self):
        self.policy = self.trainer.get_predictor(["state"], ["policy"])
        self.game = Bandit(0)

    def _before_epoch(self):
        total = 0.0
        states = np.stack([self.game.state() for _ in range(self.count)])
        for state, policy in zip(states, self.policy(states)[0]):
            arm = self.game.rng.choice(4, p=policy / policy.sum())
            reward = float(arm == state.argmax())
            total += reward
            self.queue.put([state, arm, reward - 0.25])
        self.mean = total / self.count

    def _trigger_epoch(self):
        self.trainer.monitors.put_scalar("mean_reward", self.mean)


class Model(ModelDesc):
    def inputs(self):
        return [
            tf.placeholder(tf.float32, (None, 4), "state"),
            tf.placeholder(tf.int32, (None,), "arm"),
            tf.placeholder(tf.float32, (None,), "advantage"),
        ]

    def build_graph(self, state, arm, advantage):
        logits = FullyConnected("fc", state, 4)
        policy = tf.nn.softmax(logits, name="policy")
        logp = tf.reduce_sum(tf.log(policy + 1e-8) * tf.one_hot(arm, 4), 1)
        cost = tf.negative(tf.reduce_mean(logp * advantage), name="cost")
        add_moving_summary(cost)
        return cost

    def optimizer(self):
        return tf.train.AdamOptimizer(0.05)


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
            output_names=["policy"],
        )
        print("prediction:", OfflinePredictor(config)(np.eye(4, dtype="float32"))[0].round(2))
    else:
        logger.auto_set_dir()
        q = queue.Queue()
        config = TrainConfig(
            model=Model(),
            data=FeedInput(BatchData(DataFromQueue(q), 16)),
            callbacks=[Player(q, 20, 16), ModelSaver(), MaxSaver("mean_reward")],
            steps_per_epoch=20,
            session_init=get_model_loader(args.load) if args.load else None,
            max_epoch=args.epochs,
        )
        launch_train_with_config(config, SimpleTrainer())
