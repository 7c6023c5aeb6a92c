"""stable-baselines3 on Breakout: what R3 (dqn) and R17 (a2c) are held against. Prints a rate.

    .venv-peer-sb3/bin/python benchmarks/peers/sb3.py dqn [--steps 150] [--games 1]
    .venv-peer-sb3/bin/python benchmarks/peers/sb3.py a2c [--steps 8000] [--processes]

Its own environments and wrappers, which skip frames.
"""

import argparse
import time

import ale_py
import gymnasium
from _clock import print_rate
from stable_baselines3 import A2C, DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack
from torch import nn

ENDLESS = 10**9  # steps
UPDATE_FREQUENCY = 4  # transitions for each batch
EXPLORATION = 0.91  # of the second epoch of a default run, which is the one that R1 measures
TARGET_SYNC = 2500  # updates


def make_games(count, **options):
    """Games that are stepped together, each state of four frames."""
    gymnasium.register_envs(ale_py)
    emulator = {"frameskip": 1, "repeat_action_probability": 0.0}  # the wrapper skips frames
    env = "ALE/Breakout-v5"
    games = make_atari_env(env, n_envs=count, seed=0, env_kwargs=emulator, **options)
    return VecFrameStack(games, n_stack=4)


class Clock(BaseCallback):
    """Times what is done after the first steps, and ends the training after the last.

    Args:
      done: how much is done, given the model.
      warm_up: of it that does not count.
      steps: of it that does.
    """

    def __init__(self, done, warm_up, steps):
        super().__init__()
        self._done, self._warm_up, self._steps = done, warm_up, steps
        self._start = self.rate = None

    def _on_step(self):
        now, done = time.perf_counter(), self._done(self.model)
        if self._start is None and done >= self._warm_up:
            self._start = now, done
        elif self._start is not None and done >= self._start[1] + self._steps:
            self.rate = (done - self._start[1]) / (now - self._start[0])
        return self.rate is None


def measure(unit, agent, clock):
    """Trains until the rate is known, and prints it."""
    agent.learn(ENDLESS, callback=clock)
    print_rate(unit, clock.rate)


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
    clock = Clock(lambda agent: agent._n_updates, 80, args.steps)
    measure("updates", agent, clock)


class RolloutClock(Clock):
    """Looks only where a rollout begins."""

    def _on_rollout_start(self):
        super()._on_step()

    def _on_step(self):
        return self.rate is None


def a2c(args):
    """Steps of the games per second of an A2C with its own network, which `examples/A3C` has too.

    Its defaults but for what that example does, too: games, rollouts, costs, clipping.
    """
    options = {"vec_env_cls": SubprocVecEnv, "vec_env_kwargs": {"start_method": "forkserver"}}
    agent = A2C(
        "CnnPolicy",
        make_games(args.games or 16, **(options if args.processes else {})),
        n_steps=5,
        gamma=0.99,
        ent_coef=0.01,
        vf_coef=0.5,
        max_grad_norm=0.5,
        seed=0,
        device="cpu",
    )
    clock = RolloutClock(lambda agent: agent.num_timesteps, 1600, args.steps)
    measure("steps", agent, clock)


def main():
    """Does one of the two."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=("dqn", "a2c"))
    parser.add_argument("--games", type=int, help="played at once; dqn 1, a2c 16")
    parser.add_argument("--steps", type=int, default=150, help="that count: updates, or of games")
    parser.add_argument("--processes", action="store_true", help="a2c: one for each game")
    args = parser.parse_args()
    {"dqn": dqn, "a2c": a2c}[args.kind](args)


if __name__ == "__main__":
    main()
