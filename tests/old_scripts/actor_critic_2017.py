"""Actor-critic of 2017: simulators in processes, a thread that serves them, futures."""

import argparse
import multiprocessing as mp
import threading
import uuid
from collections import namedtuple
from concurrent.futures import CancelledError

import numpy as np
import tensorflow as tf
import zmq
from six.moves import queue

from tensorpack import *
from tensorpack.RL import *
from tensorpack.tfutils import symbolic_functions as symbf
from tensorpack.tfutils.gradproc import MapGradient, SummaryGradient
from tensorpack.utils.concurrency import *
from tensorpack.utils.serialize import *
from tensorpack.utils.stats import *

WIDTH, ACTIONS, HORIZON = 9, 3, 4
Move = namedtuple("Move", ["state", "action", "value", "prob", "reward"])


class Corridor(RLEnvironment):
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
        return DiscreteActionSpace(ACTIONS)


class Model(ModelDesc):
    def _get_inputs(self):
        return [
            InputDesc(tf.float32, (None, WIDTH), "state"),
            InputDesc(tf.int64, (None,), "action"),
            InputDesc(tf.float32, (None,), "futurereward"),
            InputDesc(tf.float32, (None,), "action_prob"),
        ]

    def _build_graph(self, inputs):
        state, action, futurereward, action_prob = inputs
        layer = FullyConnected("fc0", state, 32, nl=tf.nn.relu)
        logits = FullyConnected("fc-pi", layer, out_dim=ACTIONS, nl=tf.identity)
        value = tf.squeeze(FullyConnected("fc-v", layer, 1, nl=tf.identity), [1], name="pred_value")
        policy = tf.nn.softmax(logits, name="policy")
        if not get_current_tower_context().is_training:
            return
        log_probs = tf.log(policy + 1e-6)
        log_pi = tf.reduce_sum(log_probs * tf.one_hot(action, ACTIONS), 1)
        advantage = tf.subtract(tf.stop_gradient(value), futurereward, name="advantage")
        pi = tf.reduce_sum(policy * tf.one_hot(action, ACTIONS), 1)
        importance = tf.stop_gradient(tf.clip_by_value(pi / (action_prob + 1e-8), 0, 10))
        policy_loss = tf.reduce_sum(log_pi * advantage * importance, name="policy_loss")
        entropy_loss = tf.reduce_sum(policy * log_probs, name="xentropy_loss")
        value_loss = tf.nn.l2_loss(value - futurereward, name="value_loss")
        beta = tf.get_variable(
            "entropy_beta", shape=[], initializer=tf.constant_initializer(0.01), trainable=False
        )
        self.cost = tf.truediv(
            tf.add_n([policy_loss, entropy_loss * beta, value_loss]),
            tf.cast(tf.shape(futurereward)[0], tf.float32),
            name="cost",
        )
        summary.add_moving_summary(
            policy_loss, value_loss, tf.reduce_mean(value, name="predict_reward"), self.cost
        )

    def _get_optimizer(self):
        lr = symbf.get_scalar_var("learning_rate", 0.01, summary=True)
        opt = tf.train.AdamOptimizer(lr, epsilon=1e-3)
        procs = [
            MapGradient(lambda grad: tf.clip_by_average_norm(grad, 0.1)),
            SummaryGradient(),
        ]
        return optimizer.apply_grad_processors(opt, procs)


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
            self.trainer.get_predictors(["state"], ["policy", "pred_value"], 2), batch_size=4
        )

    def _before_train(self):
        self.async_predictor.start()

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


def get_config(epochs):
    base = str(uuid.uuid1())[:6]
    up, down = ["ipc://sim-%s-%s" % (way, base) for way in ("up", "down")]
    procs = [Simulator(k, up, down) for k in range(3)]
    ensure_proc_terminate(procs)
    start_proc_mask_signal(procs)
    master = Master(up, down)
    return TrainConfig(
        model=Model(),
        dataflow=BatchData(DataFromQueue(master.queue), 32),
        callbacks=[
            ModelSaver(),
            ScheduledHyperParamSetter("learning_rate", [(20, 0.0003), (120, 0.0001)]),
            ScheduledHyperParamSetter("entropy_beta", [(80, 0.005)]),
            HumanHyperParamSetter("learning_rate"),
            master,
            StartProcOrThread(master),
        ],
        session_creator=sesscreate.NewSessionCreator(config=get_default_sess_config(0.5)),
        steps_per_epoch=20,
        max_epoch=epochs,
    )


def predict(path):
    predictor = OfflinePredictor(
        PredictConfig(
            model=Model(),
            session_init=get_model_loader(path),
            input_names=["state"],
            output_names=["policy"],
        )
    )
    policy = predictor([np.eye(WIDTH, dtype="float32")])[0]
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
        config = get_config(args.epochs)
        if args.load:
            config.session_init = get_model_loader(args.load)
        config.tower = [0]
        QueueInputTrainer(config).train()
