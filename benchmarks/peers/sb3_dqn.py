"""A DQN of stable-baselines3 with the network of `examples/DeepQNetwork`: what R3 is held against.

    .venv-peer-sb3/bin/python benchmarks/peers/sb3_dqn.py

Same layers and sizes, batch, optimizer, clipping, update frequency and exploration; its own
environments and wrappers. It learns by plain Q-learning, not Double, which spares it one of three
forward passes. Prints updates per second.
"""

import argparse
import sys
import time

import ale_py
import gymnasium
import numpy as np
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecFrameStack
from torch import nn

UPDATE_FREQUENCY = 4  # transitions for each batch
EXPLORATION = 0.91  # of the second epoch of a default run, which is the one that R1 measures
TARGET_SYNC = 2500  # updates


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


class Clock(BaseCallback):
    """Times the updates after the first ones, and ends the training after the last."""

    def __init__(self, warm_up, updates):
        super().__init__()
        self._warm_up, self._updates = warm_up, updates
        self._start = None
        self.rate = None

    def _on_step(self):
        done = self.model._n_updates - self._warm_up
        if self._start is None and done >= 0:
            self._start = time.perf_counter(), done
        elif self._start is not None and done >= self._updates:
            start, before = self._start
            self.rate = (done - before) / (time.perf_counter() - start)
            return False
        return True


def main():
    """Trains and prints the rate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", default="ALE/Breakout-v5")
    parser.add_argument("--steps", type=int, default=150, help="updates that count")
    parser.add_argument("--warm-up", type=int, default=80, help="updates before them")
    parser.add_argument("--games", type=int, default=1, help="played in turns, acted for together")
    parser.add_argument("--memory", type=int, default=20000, help="transitions")
    parser.add_argument("--initial", type=int, default=1000, help="transitions played at first")
    args = parser.parse_args()
    gymnasium.register_envs(ale_py)
    emulator = {"frameskip": 1, "repeat_action_probability": 0.0}  # the wrapper skips frames
    games = make_atari_env(args.env, n_envs=args.games, seed=0, env_kwargs=emulator)
    model = DQN(
        "CnnPolicy",
        VecFrameStack(games, n_stack=4),
        policy_kwargs={
            "features_extractor_class": Network,
            "net_arch": [],
            "optimizer_kwargs": {"eps": 1e-3},
        },
        learning_rate=1e-3,
        batch_size=64,
        buffer_size=args.memory,
        learning_starts=args.initial,
        train_freq=max(1, UPDATE_FREQUENCY // args.games),
        gradient_steps=1,
        max_grad_norm=10,
        target_update_interval=TARGET_SYNC * UPDATE_FREQUENCY,
        exploration_initial_eps=EXPLORATION,
        exploration_final_eps=EXPLORATION,
        seed=0,
        device="cpu",
    )
    clock = Clock(args.warm_up, args.steps)
    model.learn(10**9, callback=clock)
    count = sum(np.prod(p.shape) for p in model.q_net.parameters())
    sys.stdout.write(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {count:.0f} ")
    sys.stdout.write(f"parameters\nupdates/s: {clock.rate:.2f}\n")


if __name__ == "__main__":
    main()
