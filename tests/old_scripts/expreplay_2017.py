"""Q-learning of 2017: a replay memory that is a flow and a callback, and plays in a thread."""

import argparse
import random
import threading
from collections import deque

import numpy as np
import tensorflow as tf

from tensorpack import *
from tensorpack.RL import *
from tensorpack.callbacks.base import Callback
from tensorpack.tfutils import symbolic_functions as symbf
from tensorpack.tfutils.sessinit import get_model_loader
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.utils.concurrency import LoopThread

WIDTH, ACTIONS, GAMMA = 7, 2, 0.9


class Corridor(RLEnvironment):
    """The right end is worth 1, the left end -1."""

    def __init__(self):
        super(Corridor, self).__init__()
        self.restart_episode()

    def restart_episode(self):
        self.at = WIDTH // 2

    def current_state(self):
        return np.eye(WIDTH, dtype="float32")[self.at]

    def action(self, act):
        self.at += 2 * act - 1
        over = self.at in (0, WIDTH - 1)
        reward = float(np.sign(self.at - WIDTH // 2)) if over else 0.0
        if over:
            self.restart_episode()
        return reward, over

    def get_action_space(self):
        return DiscreteActionSpace(ACTIONS)


class Replay(DataFlow, Callback):
    def __init__(self, player, batch):
        self.player, self.batch = player, batch
        self.memory = deque(maxlen=500)
        self.exploration = 1.0
        self.lock = threading.Lock()

    def play(self):
        state = self.player.current_state()
        if np.random.rand() < self.exploration or not hasattr(self, "predictor"):
            action = self.player.get_action_space().sample()
        else:
            action = self.predictor([[state]])[0][0].argmax()
        reward, over = self.player.action(action)
        with self.lock:
            self.memory.append((state, action, reward, over, self.player.current_state()))

    def get_data(self):
        while len(self.memory) < 100:
            self.play()
        while True:
            with self.lock:
                drawn = random.sample(list(self.memory), self.batch)
            state, action, reward, over, after = [np.array(each) for each in zip(*drawn)]
            yield [state, action, reward.astype("float32"), over, after]

    def reset_state(self):
        pass

    def _setup_graph(self):
        self.predictor = self.trainer.get_predictor(["state"], ["Qvalue"])

    def _before_train(self):
        self.thread = LoopThread(self.play, pausable=False)
        self.thread.daemon = True
        self.thread.start()

    def _trigger_epoch(self):
        self.trainer.monitors.put_scalar("replay/size", len(self.memory))

    def _after_train(self):
        self.thread.stop()
        self.thread.join()


class Model(ModelDesc):
    def _get_inputs(self):
        return [
            InputDesc(tf.float32, (None, WIDTH), "state"),
            InputDesc(tf.int64, (None,), "action"),
            InputDesc(tf.float32, (None,), "reward"),
            InputDesc(tf.bool, (None,), "isOver"),
            InputDesc(tf.float32, (None, WIDTH), "after"),
        ]

    def value(self, state):
        hidden = FullyConnected("fc0", state, 24, nl=PReLU.symbolic_function)
        return FullyConnected("fct", hidden, ACTIONS, nl=tf.identity)

    def _build_graph(self, inputs):
        state, action, reward, over, after = inputs
        value = tf.identity(self.value(state), name="Qvalue")
        if not get_current_tower_context().is_training:
            return
        with tf.variable_scope("target"):
            best = tf.reduce_max(self.value(after), 1)
        wanted = reward + (1.0 - tf.cast(over, tf.float32)) * GAMMA * tf.stop_gradient(best)
        chosen = tf.reduce_sum(value * tf.one_hot(action, ACTIONS), 1)
        self.cost = tf.reduce_mean(symbf.huber_loss(wanted - chosen), name="cost")
        add_moving_summary(self.cost, tf.reduce_mean(tf.reduce_max(value, 1), name="max_Q"))

    def _get_optimizer(self):
        lr = symbf.get_scalar_var("learning_rate", 0.01, summary=True)
        return tf.train.AdamOptimizer(lr, epsilon=1e-3)

    @staticmethod
    def update_target_param():
        ops = []
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            for v in tf.global_variables():
                if v.op.name.startswith("target/"):
                    ops.append(v.assign(tf.get_variable(v.op.name.replace("target/", ""))))
        return tf.group(*ops, name="update_target_network")


def get_config(args):
    replay = Replay(Corridor(), 32)
    return TrainConfig(
        dataflow=replay,
        callbacks=[
            ModelSaver(),
            replay,
            ScheduledHyperParamSetter(
                ObjAttrParam(replay, "exploration"), [(0, 1), (2, 0.2)], interp="linear"
            ),
            PeriodicTrigger(RunOp(Model.update_target_param, verbose=True), every_k_steps=10),
            HumanHyperParamSetter("learning_rate"),
        ],
        model=Model(),
        steps_per_epoch=40,
        max_epoch=args.epochs,
        session_init=get_model_loader(args.load) if args.load else None,
    )  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--load", help="load model")
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predictor = OfflinePredictor(PredictConfig(
            model=Model(), session_init=get_model_loader(args.load),
            input_names=["state"], output_names=["Qvalue"]))  # fmt: skip
        print("prediction:", predictor([np.eye(WIDTH, dtype="float32")])[0].argmax(axis=1))
    else:
        logger.auto_set_dir()
        QueueInputTrainer(get_config(args)).train()
