"""stable-baselines3 on Breakout: what R3 (dqn) and R17 (a2c) are held against. Prints a rate.

    .venv-peer-sb3/bin/python benchmarks/peers/sb3.py --kind dqn [--steps 150] [--games 1]
    .venv-peer-sb3/bin/python benchmarks/peers/sb3.py --kind a2c [--steps 8000]

Its own environments and wrappers, which skip frames.
"""

import time

import ale_py
import gymnasium
from _clock import parse_args, print_rate
from stable_baselines3 import A2C, DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecFrameStack
from torch import nn

ENDLESS = 10**9  # steps
UPDATE_FREQUENCY = 4  # transitions for each batch
EXPLORATION = 0.91  # of the second epoch of a default run, which is the one that R1 measures
TARGET_SYNC = 2500  # updates


def make_games(count):
    """Games that are stepped together, each state of four frames."""
    gymnasium.register_envs(ale_py)
    emulator = {"frameskip": 1, "repeat_action_probability": 0.0}  # the wrapper skips frames
    env = "ALE/Breakout-v5"
    games = make_atari_env(env, n_envs=count, seed=0, env_kwargs=emulator)
    return VecFrameStack(games, n_stack=4)


class Clock(BaseCallback):
    """Times what is done from `start` to `end`, two values of `done`, and ends the training."""

    def __init__(self, done, start, end):
        super().__init__()
        self._done, self._left, self.times = done, [start, end], []

    def _on_step(self):
        if self._done(self.model) >= self._left[0]:
            self.times.append((time.perf_counter(), self._done(self.model)))
            del self._left[0]
        return bool(self._left)


def measure(unit, agent, done, warm_up, steps):
    """Trains until the rate is known, and prints it."""
    clock = Clock(done, warm_up, warm_up + steps)
    agent.learn(ENDLESS, callback=clock)
    seconds, count = (end - start for start, end in zip(*clock.times))
    print_rate(unit, count / seconds)


class Network(BaseFeaturesExtractor):
    """Three convolutions with the padding that TensorFlow calls SAME, and 512 units."""

    def __init__(self, observation_space, features_dim=512):
        super().__init__(observation_space, features_dim)
        self.layers = nn.Sequential(
            *[nn.Conv2d(4, 32, 8, stride=4, padding=2), nn.PReLU(init=0.001)],
            *[nn.ZeroPad2d((1, 2, 1, 2)), nn.Conv2d(32, 64, 4, stride=2), nn.PReLU(init=0.001)],
            *[nn.Conv2d(64, 64, 3, padding=1), nn.PReLU(init=0.001)],
            *[nn.Flatten(), nn.Linear(64 * 11 * 11, features_dim), nn.LeakyReLU(0.01)],
        )

    def forward(self, observations):
        return self.layers(observations)


def dqn(args):
    """Updates per second of a DQN with the network of `examples/DeepQNetwork`.

    Same layers and sizes, batch, optimizer, clipping, update frequency and exploration. It learns
    by plain Q-learning, not Double, which spares it one of three forward passes.
    """
    games = args.games or 1
    agent = DQN(
        "CnnPolicy",
        make_games(games),
        policy_kwargs={
            "features_extractor_class": Network,
            "net_arch": [],
            "optimizer_kwargs": {"eps": 1e-3},
        },
        learning_rate=1e-3,
        batch_size=64,
        buffer_size=20000,
        learning_starts=1000,
        train_freq=max(1, UPDATE_FREQUENCY // games),
        gradient_steps=1,
        max_grad_norm=10,
        target_update_interval=TARGET_SYNC * UPDATE_FREQUENCY,
        exploration_initial_eps=EXPLORATION,
        exploration_final_eps=EXPLORATION,
        seed=0,
        device="cpu",
    )
    measure("updates", agent, lambda agent: agent._n_updates, 80, args.steps)


def a2c(args):
    """Steps of the games per second of an A2C with its own network, which `examples/A3C` has too.

    Its defaults but for what that example does, too: games, rollouts, costs, clipping.
    """
    agent = A2C(
        "CnnPolicy",
        make_games(args.games or 16),
        n_steps=5,
        gamma=0.99,
        ent_coef=0.01,
        vf_coef=0.5,
        max_grad_norm=0.5,
        seed=0,
        device="cpu",
    )
    # whole rollouts: 1,600 and 8,000 steps are 20 and 100 of them
    measure("steps", agent, lambda agent: agent.num_timesteps, 1600, args.steps)


def main():
    """Does one of the two."""
    args = parse_args(__doc__, kind="dqn", games=0, steps=150)
    {"dqn": dqn, "a2c": a2c}[args.kind](args)


if __name__ == "__main__":
    main()
