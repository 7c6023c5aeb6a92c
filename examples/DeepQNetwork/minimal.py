"""Double DQN on one page, for any game of gymnasium or of the Arcade Learning Environment.

    python examples/DeepQNetwork/minimal.py CartPole-v1
    python examples/DeepQNetwork/minimal.py pong.bin --epochs 100

It is to be read and changed. `DQN.py` plays beside its steps, and resumes exactly.
"""

import argparse

import numpy as np

import tensorpack as tp
from tensorpack.compat import tfv1 as tf


class Small:
    """The numbers for small games; in each step, every game is played on by an action."""

    games, history = 8, 2  # played at the same time; frames in a state
    convolutions, hidden = (), (128, 64)  # (filters, size, stride) of each; units
    memory, populate = 20000, 1000  # transitions: at most, before the first step
    batch, discount, steps_per_epoch = 64, 0.95, 500
    learning_rate, copy_every = 1e-3, 100  # the latter: steps between updates of the target network
    explore, epsilon = 1500, 0.05  # steps until the share of random actions is the last one


class Atari(Small):
    games, history = 4, 4
    convolutions, hidden = ((32, 8, 4), (64, 4, 2), (64, 3, 1)), (512,)
    memory, populate = 200000, 20000
    batch, discount, steps_per_epoch = 32, 0.99, 5000
    learning_rate, copy_every = 1e-4, 2000
    explore, epsilon = 60000, 0.02


class Model(tp.ModelDesc):
    """Learns the values of actions from batches of a `ReplayMemory`."""

    def __init__(self, player, numbers):
        self.player, self.numbers = player, numbers

    def inputs(self):
        frames = [None, self.numbers.history + 1, *self.player.frame_shape]
        return [
            tf.TensorSpec(frames, self.player.frame_dtype, "frames"),
            tf.TensorSpec([None], tf.int64, "action"),
            tf.TensorSpec([None], tf.float32, "reward"),
            tf.TensorSpec([None], tf.bool, "terminated"),
        ]

    def values(self, state):
        """The values of the actions, float32 [batch, actions], of states [batch, *, history]."""
        layer = tf.cast(state, tf.float32) / (255 if state.dtype == tf.uint8 else 1)
        for i, (filters, size, stride) in enumerate(self.numbers.convolutions):
            layer = tf.nn.relu(tp.Conv2D(f"conv{i}", layer, filters, size, strides=stride))
        for i, units in enumerate(self.numbers.hidden):
            layer = tf.nn.relu(tp.FullyConnected(f"hidden{i}", layer, units))
        return tp.FullyConnected("values", layer, self.player.num_actions)

    def build_graph(self, frames, action, reward, terminated):
        frames = tf.transpose(frames, [0, *range(2, frames.shape.ndims), 1])  # as channels
        state, next_state = tf.identity(frames[..., :-1], name="state"), frames[..., 1:]
        values, learned = tp.record_variables(self.values, state)
        tf.identity(values, name="Q")
        with tf.variable_scope("", reuse=True):
            best = tf.argmax(self.values(next_state), axis=1)  # chosen here, valued by the twin
        next_values, self.target = tp.build_twin("target", self.values, next_state, source=learned)
        next_value = tf.where(terminated, tf.zeros_like(reward), self.pick(next_values, best))
        goal = tf.stop_gradient(reward + self.numbers.discount * next_value)
        cost = tf.identity(tf.losses.huber_loss(goal, self.pick(values, action)), name="cost")
        tp.add_moving_summary(cost, tf.reduce_mean(next_value, name="mean_value"))
        return cost

    def pick(self, values, action):
        """The value of one action in each row, float32 [batch]."""
        return tf.reduce_sum(values * tf.one_hot(action, self.player.num_actions), axis=1)

    def optimizer(self):
        return tf.train.AdamOptimizer(self.numbers.learning_rate, epsilon=1e-4)


class Experience(tp.DataFlow, tp.Callback):
    """Plays by the present network, and yields batches of what was played."""

    def __init__(self, player, numbers):
        self.player, self.numbers, games = player, numbers, player.num_envs
        shape, history, dtype = player.frame_shape, numbers.history, player.frame_dtype
        self.memory = tp.ReplayMemory(numbers.memory, shape, history, games, dtype)
        self.history = tp.FrameHistory(games, shape, history, dtype)
        self.rng, self.scores = tp.get_rng(), []

    def _setup_graph(self):
        self.predict = self.trainer.get_predictor(["state"], ["Q"])

    def _before_train(self):
        self.frames, self.starts = self.player.reset(), np.ones(self.player.num_envs, bool)
        while len(self.memory) < self.numbers.populate:
            self.trainer.check_stop()
            self.play(epsilon=1.0)

    def play(self, epsilon):
        """One step in all games."""
        (values,) = self.predict(self.history.observe(self.frames, self.starts))
        actions = tp.epsilon_greedy(values, epsilon, self.rng)
        step = self.player.step(actions)
        ends = step.terminated | step.life_lost
        self.memory.end_episodes(np.flatnonzero(step.reset))  # also of games that were cut off
        keep = np.flatnonzero(~step.reset)  # a step that begins a game is no transition
        stored = [self.frames, actions, np.sign(step.reward), ends, step.truncated]
        self.memory.append(*[each[keep] for each in stored], keep, step.frames[keep])
        self.scores += step.episode_score[~np.isnan(step.episode_score)].tolist()
        self.frames, self.starts = step.frames, step.reset | step.life_lost

    def __iter__(self):
        while True:
            explored = min(1.0, self.global_step / self.numbers.explore)
            self.play(1.0 + explored * (self.numbers.epsilon - 1.0))
            yield list(self.memory.sample(self.numbers.batch, self.rng))

    def _trigger_epoch(self):
        if self.scores:
            self.trainer.monitors.put_scalar("score", float(np.mean(self.scores)))
        self.scores.clear()


def train(player, numbers, epochs, *callbacks):
    """Trains on a player, with more callbacks; saves and logs in the directory of the logger."""
    model, experience = Model(player, numbers), Experience(player, numbers)
    copy = tp.RunOp(lambda: model.target.copy_op("copy_to_target"), run_before=True)
    copying = tp.PeriodicTrigger(copy, every_k_steps=numbers.copy_every)
    callbacks = [tp.ModelSaver(), copying, experience, *callbacks]
    data = tp.FeedInput(experience)  # each batch is played by the network of the step before
    length = {"steps_per_epoch": numbers.steps_per_epoch, "max_epoch": epochs}
    config = tp.TrainConfig(model=model, data=data, callbacks=callbacks, **length)
    tp.launch_train_with_config(config, tp.SimpleTrainer())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("game", help="an id of gymnasium, or a ROM such as pong.bin")
    parser.add_argument("--epochs", type=int, default=20, help="how many (default: 20)")
    parser.add_argument("--seed", type=int, default=0, help="of all random numbers (default: 0)")
    parser.add_argument("--logdir", help="of the run (default: train_log/minimal-GAME)")
    args = parser.parse_args()
    kind, numbers = (tp.AtariPlayers, Atari) if args.game[-4:] == ".bin" else (tp.GymPlayers, Small)
    tp.logger.set_logger_dir(args.logdir or f"train_log/minimal-{args.game.replace('/', '-')}")
    tp.fix_rng_seed(args.seed)
    with kind(args.game, numbers.games, seed=args.seed) as player:
        train(player, numbers, args.epochs)
