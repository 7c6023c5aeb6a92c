"""A DQN for tensorpack 0.11, as strong as its public API allows: what R2 is held against.

    .venv-peer-tensorpack-0.11/bin/python benchmarks/peers/tensorpack_dqn.py --rom breakout.bin

The network, batch, optimizer, summaries and update frequency of `examples/DeepQNetwork`. As with
tensorpack's own example, three games are played in three threads, each with a predictor call for
its one state, and a batch is put together sample by sample. Prints updates per second.
"""

import os
import queue
import tempfile
import threading
import time

import cv2
import numpy as np
import tensorflow as tf
from _clock import parse_args, print_rate
from ale_py import ALEInterface, LoggerMode

import tensorpack as tp
from tensorpack.tfutils import gradproc, optimizer, summary
from tensorpack.tfutils.argscope import argscope

BATCH, HISTORY, SIDE, DISCOUNT = 64, 4, 84, 0.99
UPDATE_FREQUENCY = 4  # transitions for each batch
FRAME_SKIP = 4
GAMES, MEMORY, INITIAL = 3, 20000, 3000  # transitions in the memory, and played at first
WARM_UP = 80  # updates before those that count
AHEAD = 5  # batches that the players may lag behind
EXPLORATION = 0.91  # that of R1
TARGET_SYNC = 2500  # steps
LEARNING_RATE, MAX_GRADIENT_NORM = 1e-3, 10.0


class Game:
    """One game that starts itself again; a frame is grey, 84 x 84."""

    def __init__(self, rom, seed):
        ALEInterface.setLoggerMode(LoggerMode.Error)
        self._ale = ALEInterface()
        self._ale.setInt("random_seed", seed)
        self._ale.setInt("frame_skip", 1)
        self._ale.setFloat("repeat_action_probability", 0.0)
        self._ale.loadROM(rom)
        self._actions = self._ale.getMinimalActionSet()
        self.num_actions = len(self._actions)
        rows, columns = self._ale.getScreenDims()
        self._screens = np.zeros((2, rows, columns), np.uint8)

    def frame(self):
        """The newest frame."""
        return cv2.resize(self._screens.max(0), (SIDE, SIDE), interpolation=cv2.INTER_AREA)

    def step(self, action):
        """Plays four emulator frames; returns the reward and whether a life was lost."""
        reward, lives = 0.0, self._ale.lives()
        for i in range(FRAME_SKIP):
            reward += self._ale.act(self._actions[action])
            if i >= FRAME_SKIP - 2:
                self._ale.getScreenGrayscale(self._screens[i - FRAME_SKIP + 2])
        over = self._ale.game_over()
        if over:
            self._ale.reset_game()
        return reward, over or self._ale.lives() < lives


class Lane:
    """The transitions of one game, in a ring. Each entry knows how old its episode is."""

    def __init__(self, capacity):
        self._frames = np.zeros((capacity, SIDE, SIDE), np.uint8)
        # action, reward, whether a life was lost, frames of the episode before this one
        kinds = [("action", "i8"), ("reward", "f4"), ("over", "?"), ("age", "i8")]
        self._facts = np.zeros(capacity, kinds)
        self._capacity, self._count, self._age = capacity, 0, 0

    def append(self, frame, action, reward, over):
        row = self._count % self._capacity
        self._frames[row] = frame
        self._facts[row] = action, reward, over, self._age
        self._age = 0 if over else self._age + 1
        self._count += 1

    def sample(self, rng):
        """One transition: frames `[84, 84, 5]`, action, reward, whether it was the last one."""
        # Players write meanwhile: entries that they may reach are left out.
        oldest = max(self._count - self._capacity, 0) + 2 * UPDATE_FREQUENCY * AHEAD
        newest = rng.randint(oldest + HISTORY - 1, self._count - 1)
        rows = np.arange(newest - HISTORY + 1, newest + 2) % self._capacity
        action, reward, over, age = self._facts[rows[-2]].item()
        stack = np.zeros((SIDE, SIDE, HISTORY + 1), np.uint8)
        known = min(age, HISTORY - 1) + 2  # frames of this episode, with the one that followed
        stack[..., -known:] = self._frames[rows[-known:]].transpose(1, 2, 0)
        return stack, action, reward, over


class Player(threading.Thread):
    """Makes one transition for each token."""

    def __init__(self, game, lane, tokens, seed):
        super().__init__(daemon=True)
        self._game, self._lane, self._tokens = game, lane, tokens
        self._rng = np.random.RandomState(seed)
        self._recent = np.zeros((SIDE, SIDE, HISTORY), np.uint8)
        self.predict = None

    def play(self, epsilon):
        frame = self._game.frame()
        self._recent[:, :, :-1] = self._recent[:, :, 1:]
        self._recent[:, :, -1] = frame
        if self._rng.rand() <= epsilon:
            action = self._rng.randint(self._game.num_actions)
        else:
            action = self.predict(self._recent[None])[0][0].argmax()
        reward, over = self._game.step(action)
        self._lane.append(frame, action, reward, over)
        if over:
            self._recent[:] = 0

    def run(self):
        while self._tokens.get():
            self.play(EXPLORATION)


class Replay(tp.DataFlow, tp.Callback):
    """Batches from the memory, for each of which the players are given four tokens."""

    def __init__(self, rom):
        self._tokens = queue.Queue(UPDATE_FREQUENCY * AHEAD)
        self._lanes = [Lane(MEMORY // GAMES) for _ in range(GAMES)]
        games = [Game(rom, seed) for seed in range(GAMES)]
        self.num_actions = games[0].num_actions
        self._players = [
            Player(game, lane, self._tokens, seed)
            for seed, (game, lane) in enumerate(zip(games, self._lanes))
        ]
        self._filled = threading.Event()
        self._rng = np.random.RandomState(0)

    def _setup_graph(self):
        for player in self._players:
            player.predict = self.trainer.get_predictor(["state"], ["Qvalue"], device=-1)

    def _before_train(self):
        for _ in range(INITIAL // GAMES):
            for player in self._players:
                player.play(1.0)
        for player in self._players:
            player.start()
        self._filled.set()

    def _after_train(self):
        for _ in self._players:
            self._tokens.put(None)

    def __iter__(self):
        self._filled.wait()
        while True:
            picked = self._rng.randint(len(self._lanes), size=BATCH)
            samples = [self._lanes[i].sample(self._rng) for i in picked]
            yield [np.asarray(column) for column in zip(*samples)]
            for _ in range(UPDATE_FREQUENCY):
                self._tokens.put(1)


class Model(tp.ModelDesc):
    """The Double-DQN of `examples/DeepQNetwork/DQNModel.py`."""

    def __init__(self, num_actions):
        self._num_actions = num_actions

    def inputs(self):
        return [
            tf.TensorSpec((None, SIDE, SIDE, HISTORY + 1), tf.uint8, "comb_state"),
            tf.TensorSpec((None,), tf.int64, "action"),
            tf.TensorSpec((None,), tf.float32, "reward"),
            tf.TensorSpec((None,), tf.bool, "isOver"),
        ]

    def _network(self, image):
        x = image / 255.0
        prelu = lambda x, name=None: tp.PReLU("prelu", x)  # noqa: E731
        with argscope(tp.Conv2D, activation=prelu, padding="same"):
            x = tp.Conv2D("conv0", x, 32, 8, strides=4)
            x = tp.Conv2D("conv1", x, 64, 4, strides=2)
            x = tp.Conv2D("conv2", x, 64, 3)
        x = tf.nn.leaky_relu(tp.FullyConnected("fc0", x, 512), 0.01)
        return tp.FullyConnected("fct", x, self._num_actions)

    def build_graph(self, comb_state, action, reward, over):
        frames = tf.cast(comb_state, tf.float32)
        state = tf.identity(frames[..., :HISTORY], name="state")
        q = tf.identity(self._network(state), name="Qvalue")
        if not self.training:
            return None
        later = frames[..., 1:]
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            best = tf.argmax(self._network(later), 1)
        kept = lambda getter, *args, **kw: getter(*args, **dict(kw, trainable=False))  # noqa: E731
        with tf.variable_scope("target", custom_getter=kept):
            values = self._network(later)
        bootstrap = tf.reduce_sum(values * tf.one_hot(best, self._num_actions), 1)
        weight = DISCOUNT * (1.0 - tf.cast(over, tf.float32))
        target = tf.clip_by_value(reward, -1.0, 1.0) + weight * tf.stop_gradient(bootstrap)
        chosen = tf.reduce_sum(q * tf.one_hot(action, self._num_actions), 1)
        cost = tf.losses.huber_loss(target, chosen)
        predicted = tf.reduce_mean(tf.reduce_max(q, 1), name="predict_reward")
        summary.add_moving_summary(tf.identity(cost, name="cost"), predicted)
        kinds = ["histogram", "rms"]
        summary.add_param_summary(("conv.*/W", kinds), ("fc.*/W", kinds))
        return cost

    def optimizer(self):
        rate = tf.Variable(LEARNING_RATE, trainable=False, name="learning_rate")
        tf.summary.scalar("learning_rate-summary", rate)
        adam = tf.train.AdamOptimizer(rate, epsilon=1e-3)
        clip = gradproc.GlobalNormClip(MAX_GRADIENT_NORM)
        return optimizer.apply_grad_processors(adam, [clip, gradproc.SummaryGradient()])


def update_target():
    """An op that copies the network to the target network."""
    by_name = {v.op.name: v for v in tf.global_variables()}
    names = [name for name in by_name if name.startswith("target/")]
    return tf.group(*[by_name[name].assign(by_name[name[len("target/") :]]) for name in names])


class Clock(tp.Callback):
    """Notes when each step ends."""

    def __init__(self):
        self.times = []

    def _trigger_step(self):
        self.times.append(time.perf_counter())


def main():
    """Trains one epoch and prints the rate."""
    args = parse_args(__doc__, rom="breakout.bin", steps=150)
    cv2.setNumThreads(1)
    tp.logger.set_logger_dir(os.path.join(tempfile.mkdtemp(), "log"))
    replay, clock = Replay(args.rom), Clock()
    config = tp.TrainConfig(
        data=tp.QueueInput(replay),
        model=Model(replay.num_actions),
        callbacks=[
            tp.ModelSaver(),
            tp.PeriodicTrigger(tp.RunOp(update_target, verbose=True), every_k_steps=TARGET_SYNC),
            replay,
            clock,
        ],
        steps_per_epoch=WARM_UP + args.steps,
        max_epoch=1,
    )
    tp.launch_train_with_config(config, tp.SimpleTrainer())
    print_rate("updates", args.steps / (clock.times[-1] - clock.times[WARM_UP - 1]))
    # tensorpack 0.11 leaves its threads in TensorFlow, where the end of the interpreter may crash.
    os._exit(0)


if __name__ == "__main__":
    main()
