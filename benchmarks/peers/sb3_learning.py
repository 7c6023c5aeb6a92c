"""A DQN of stable-baselines3 that learns a game for some hours: what R16 is held against.

    .venv-peer-sb3/bin/python benchmarks/peers/sb3_learning.py --game Pong --hours 2 \
        --logdir train_log/sb3-pong

It learns with the settings that rl-baselines3-zoo has for DQN on Atari games
(`hyperparams/dqn.yml`), in games by the rules of the presets of `examples/DeepQNetwork`: sticky
actions, whole games, no no-ops at the start. Its wrapper presses FIRE at the start of a game. The
log directory gets the two files that `plot_scores.py` reads, `stats.json` and `episodes.csv`; it
must be new. Most of the actions of the first hours are random with these settings, so the last line
of `stats.json` has the mean score of games with 1 % random actions, played when the time is over.
"""

import argparse
import json
import os
import time

import ale_py
import gymnasium
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecFrameStack

FRAME_SKIP = 4
UPDATE_FREQUENCY = 4
STEPS_PER_EPOCH = 25000  # agent steps between two lines of stats.json
EVALUATED_GAMES = 20
# Of rl-baselines3-zoo; the exploration ends after exploration_fraction of the 10 million steps.
AGENT_STEPS = 10**7
ZOO = {
    "buffer_size": 100000,
    "learning_rate": 1e-4,
    "batch_size": 32,
    "learning_starts": 100000,
    "target_update_interval": 1000,
    "train_freq": UPDATE_FREQUENCY,
    "gradient_steps": 1,
    "exploration_fraction": 0.1,
    "exploration_final_eps": 0.01,
}


class Record(BaseCallback):
    """Writes the scores of whole games, and when they ended; ends the training in time."""

    def __init__(self, logdir, seconds):
        super().__init__()
        self._logdir, self._seconds = logdir, seconds
        self._start = time.perf_counter()
        self._episodes = ["step,score,length"]
        self._epochs = []

    def _on_step(self):
        for info in self.locals["infos"]:
            if "episode" in info:  # of the emulator: all lives, unclipped, in frames
                game = info["episode"]
                length = game["l"] // FRAME_SKIP
                self._episodes.append(f"{self.num_timesteps},{float(game['r'])},{length}")
        more = time.perf_counter() - self._start < self._seconds
        if not more or self.num_timesteps % STEPS_PER_EPOCH == 0:
            self.write()
        return more

    def write(self, **scores):
        """Adds an epoch, with the scores of an evaluation if there was one."""
        self._epochs.append(
            {
                **scores,
                "epoch_num": len(self._epochs) + 1,
                "global_step": self.model._n_updates,
                "agent_steps": self.num_timesteps,
                "emulator_frames": self.num_timesteps * FRAME_SKIP,
                "exploration": self.model.exploration_rate,
                "hours": (time.perf_counter() - self._start) / 3600,
            }
        )
        self._replace("episodes.csv", "\n".join([*self._episodes, ""]))
        self._replace("stats.json", json.dumps(self._epochs))

    def _replace(self, name, text):
        path = os.path.join(self._logdir, name)
        with open(f"{path}.new", "w") as file:
            file.write(text)
        os.replace(f"{path}.new", path)


def main():
    """Learns until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--game", default="Breakout", help="as ale-py calls it")
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--logdir", required=True, help="must not exist")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    gymnasium.register_envs(ale_py)
    os.makedirs(args.logdir)
    games = make_atari_env(
        f"ALE/{args.game}-v5",
        seed=args.seed,
        env_kwargs={"frameskip": 1, "repeat_action_probability": 0.25},
        wrapper_kwargs={"noop_max": 0, "terminal_on_life_loss": False, "frame_skip": FRAME_SKIP},
    )
    record = Record(args.logdir, 3600 * args.hours)
    stacked = VecFrameStack(games, n_stack=4)
    agent = DQN("CnnPolicy", stacked, seed=args.seed, device="cpu", **ZOO)
    agent.learn(AGENT_STEPS, record)
    agent.exploration_rate = ZOO["exploration_final_eps"]
    scores, _ = evaluate_policy(agent, stacked, EVALUATED_GAMES, False, return_episode_rewards=True)
    record.write(mean_score=sum(scores) / len(scores), max_score=max(scores))


if __name__ == "__main__":
    main()
