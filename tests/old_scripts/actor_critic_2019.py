"""Actor-critic of 2019: simulators in processes, a thread that serves them, futures."""

import argparse
import multiprocessing as mp
import threading
import uuid
from collections import namedtuple
from concurrent.futures import CancelledError

import numpy as np
import zmq
from six.moves import queue

from tensorpack import *

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.gradproc import MapGradient, SummaryGradient
from tensorpack.utils.concurrency import *
from tensorpack.utils.serialize import *
from tensorpack.tfutils import optimizer, summary

WIDTH, ACTIONS, HORIZON = 9, 3, 4
Move = namedtuple("Move", ["state", "action", "value", "prob", "reward"])


class Corridor(object):
    """Walk to the right end of a corridor: 1 point."""

    def __init__(self):
        super(Corridor, self).__init__()
        self.rng = get_rng(self)
        self.restart_episode()

    def restart_episode(self):
        self.at, self.age = WIDTH // 2, 0

    def current_state(self):
        view = np.zeros(WIDTH, dtype="float32")
        view[self.at] = 1
        return view

    def action(self, act):
        self.at = min(max(self.at + act - 1, 0), WIDTH - 1)
        self.age += 1
        over = self.at == WIDTH - 1 or self.age > 30
        reward = float(self.at == WIDTH - 1)
        if over:
            self.restart_episode()
        return reward, over

    def get_action_space(self):
        return ACTIONS


class Model(ModelDesc):
    def inputs(self):
        return [
            tf.TensorSpec((None, WIDTH), tf.float32, "state"),
            tf.TensorSpec((None,), tf.int64, "action"),
            tf.TensorSpec((None,), tf.float32, "futurereward"),
            tf.TensorSpec((None,), tf.float32, "action_prob"),
        ]

    def build_graph(self, state, action, futurereward, action_prob):
        with argscope(FullyConnected, activation=tf.identity):
            hidden = FullyConnected("fc0", state, 32, activation=tf.nn.relu)
            logits = FullyConnected("fc-pi", hidden, ACTIONS)
            value = FullyConnected("fc-v", hidden, 1)
        value = tf.squeeze(value, [1], name="pred_value")
        policy = tf.nn.softmax(logits, name="policy")
        if not self.training:
            return
        chosen = tf.one_hot(action, ACTIONS)
        log_probs = tf.log(policy + 1e-6)
        advantage = tf.subtract(tf.stop_gradient(value), futurereward, name="advantage")
        importance = tf.stop_gradient(
            tf.clip_by_value(tf.reduce_sum(policy * chosen, 1) / (action_prob + 1e-8), 0, 10)
        )
        policy_loss = tf.reduce_sum(
            tf.reduce_sum(log_probs * chosen, 1) * advantage * importance, name="policy_loss"
        )
        entropy_loss = tf.reduce_sum(policy * log_probs, name="xentropy_loss")
        value_loss = tf.nn.l2_loss(value - futurereward, name="value_loss")
        beta = tf.get_variable(
            "entropy_beta", shape=[], initializer=tf.constant_initializer(0.01), trainable=False
        )
        cost = tf.add_n([policy_loss, entropy_loss * beta, value_loss])
        cost = tf.truediv(cost, tf.cast(tf.shape(futurereward)[0], tf.float32), name="cost")
        summary.add_moving_summary(policy_loss, value_loss, cost)
        return cost

    def optimizer(self):
        lr = tf.get_variable("learning_rate", initializer=0.01, trainable=False)
        opt = tf.train.AdamOptimizer(lr, epsilon=1e-3)
        clip = MapGradient(lambda grad: tf.clip_by_average_norm(grad, 0.1))
        return optimizer.apply_grad_processors(opt, [clip, SummaryGradient()])


class Evaluate(Callback):
    def _setup_graph(self):
        self.predict = self.trainer.get_predictor(["state"], ["policy"])

    def _trigger(self):
        policy = self.predict(np.eye(WIDTH, dtype="float32"))[0]
        self.trainer.monitors.put_scalar("right", policy[:, 2].mean())


class Simulator(mp.Process):
    """Plays, and asks the trainer for each action."""

    def __init__(self, number, up, down):
        super(Simulator, self).__init__(name="simulator-%d" % number)
        self.tag = ("sim-%d" % number).encode()
        self.up, self.down = up, down

    def run(self):
        game = Corridor()
        context = zmq.Context()
        to_master = context.socket(zmq.PUSH)
        to_master.set_hwm(2)
        to_master.connect(self.up)
        from_master = context.socket(zmq.DEALER)
        from_master.setsockopt(zmq.IDENTITY, self.tag)
        from_master.connect(self.down)
        outcome = (0.0, False)
        while True:
            to_master.send(dumps([self.tag, game.current_state(), outcome[0], outcome[1]]))
            outcome = game.action(loads(from_master.recv()))


class Master(threading.Thread, Callback):
    """Answers the simulators, and makes training examples of what they did."""

    def __init__(self, up, down):
        super(Master, self).__init__(name="master")
        self.daemon = True
        self.context = zmq.Context()
        self.incoming = self.context.socket(zmq.PULL)
        self.incoming.bind(up)
        self.incoming.set_hwm(10)
        self.outgoing = self.context.socket(zmq.ROUTER)
        self.outgoing.set_hwm(10)
        self.outgoing.bind(down)
        self.answers = queue.Queue(maxsize=100)
        self.sender = LoopThread(lambda: self.outgoing.send_multipart(self.answers.get()))
        self.sender.daemon = True
        self.sender.start()
        self.queue = queue.Queue(maxsize=256)
        self.memory = {}

    def _setup_graph(self):
        self.async_predictor = MultiThreadAsyncPredictor(
            [self.trainer.get_predictor(["state"], ["policy", "pred_value"]) for _ in range(2)],
            batch_size=4,
        )

    def _before_train(self):
        self.async_predictor.start()
        logger.info("Starting master ...")
        start_proc_mask_signal(self)

    def run(self):
        try:
            while True:
                tag, state, reward, over = loads(self.incoming.recv(copy=False).bytes)
                moves = self.memory.setdefault(tag, [])
                if moves:
                    moves[-1] = moves[-1]._replace(reward=reward)
                    if over:
                        self.learn(moves, 0.0, True)
                    elif len(moves) > HORIZON:
                        self.learn(moves, moves[-1].value, False)
                self.decide(tag, state)
        except zmq.ContextTerminated:
            logger.info("The context of the simulators was terminated.")

    def decide(self, tag, state):
        def answered(future):
            try:
                policy, value = future.result()
            except CancelledError:
                logger.info("Client {} cancelled.".format(tag))
                return
            assert np.all(np.isfinite(policy)), policy
            action = np.random.choice(len(policy), p=policy / policy.sum())
            self.memory[tag].append(Move(state, action, value, policy[action], None))
            self.answers.put([tag, dumps(action)])

        self.async_predictor.put_task([state], answered)

    def learn(self, moves, ahead, everything):
        last = [] if everything else moves[-1:]
        for each in reversed(moves if everything else moves[:-1]):
            ahead = np.clip(each.reward, -1, 1) + 0.99 * ahead
            self.queue.put([each.state, each.action, ahead, each.prob])
        moves[:] = last


def train(args):
    base = str(uuid.uuid1())[:6]
    up, down = ["ipc://sim-%s-%s" % (way, base) for way in ("up", "down")]
    procs = [Simulator(k, up, down) for k in range(3)]
    ensure_proc_terminate(procs)
    start_proc_mask_signal(procs)
    master = Master(up, down)
    config = TrainConfig(
        model=Model(),
        dataflow=BatchData(DataFromQueue(master.queue), 32),
        callbacks=[
            ModelSaver(),
            ScheduledHyperParamSetter("learning_rate", [(20, 0.0003), (120, 0.0001)]),
            ScheduledHyperParamSetter("entropy_beta", [(80, 0.005)]),
            master,
            PeriodicTrigger(Evaluate(), every_k_epochs=2),
        ],
        session_creator=sesscreate.NewSessionCreator(config=get_default_sess_config(0.5)),
        session_init=SmartInit(args.load),
        steps_per_epoch=20,
        max_epoch=args.epochs,
    )
    launch_train_with_config(config, AsyncMultiGPUTrainer([0, 1]))


def predict(path):
    predictor = OfflinePredictor(
        PredictConfig(
            model=Model(),
            session_init=SmartInit(path),
            input_names=["state"],
            output_names=["policy"],
        )
    )
    policy = predictor(np.eye(WIDTH, dtype="float32"))[0]
    print("prediction:", policy.argmax(axis=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--load", help="load model")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--predict", action="store_true")
    args = parser.parse_args()
    if args.predict:
        predict(args.load)
    else:
        logger.auto_set_dir()
        train(args)
