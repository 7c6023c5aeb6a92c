"""An A2C of stable-baselines3 with its network for Atari games: what `a2c_sb3.py` is held against.

    .venv-peer-sb3/bin/python benchmarks/peers/sb3_a2c.py

Its defaults but for what `examples/A3C` does too: games, rollouts, costs, clipping. The network is
its own ("CnnPolicy"), which `examples/A3C` has as well. Prints steps of the games per second.
"""

import argparse
import sys
import time

import ale_py
import gymnasium
import numpy as np
import torch
from stable_baselines3 import A2C
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack


class Clock(BaseCallback):
    """Times the steps after the first ones, and ends the training after the last."""

    def __init__(self, warm_up, steps):
        super().__init__()
        self._warm_up, self._steps = warm_up, steps
        self._start = None
        self.rate = None

    def _on_rollout_start(self):
        done = self.num_timesteps
        if self._start is None and done >= self._warm_up:
            self._start = time.perf_counter(), done
        elif self._start is not None and done >= self._start[1] + self._steps:
            start, before = self._start
            self.rate = (done - before) / (time.perf_counter() - start)

    def _on_step(self):
        return self.rate is None


def main():
    """Trains and prints the rate."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", default="ALE/Breakout-v5")
    parser.add_argument("--games", type=int, default=16)
    parser.add_argument("--steps", type=int, default=8000, help="steps of the games that count")
    parser.add_argument("--warm-up", type=int, default=1600, help="steps before them")
    parser.add_argument("--processes", action="store_true", help="a process for each game")
    args = parser.parse_args()
    gymnasium.register_envs(ale_py)
    games = make_atari_env(
        args.env,
        n_envs=args.games,
        seed=0,
        env_kwargs={"frameskip": 1, "repeat_action_probability": 0.0},  # the wrapper skips frames
        vec_env_cls=SubprocVecEnv if args.processes else None,
        vec_env_kwargs={"start_method": "forkserver"} if args.processes else None,
    )
    model = A2C(
        "CnnPolicy",
        VecFrameStack(games, n_stack=4),
        n_steps=5,
        gamma=0.99,
        ent_coef=0.01,
        vf_coef=0.5,
        max_grad_norm=0.5,
        seed=0,
        device="cpu",
    )
    clock = Clock(args.warm_up, args.steps)
    model.learn(10**9, callback=clock)
    games.close()
    count = sum(np.prod(p.shape) for p in model.policy.parameters())
    sys.stdout.write(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {count:.0f} ")
    sys.stdout.write(f"parameters\nsteps/s: {clock.rate:.2f}\n")


if __name__ == "__main__":
    main()
