"""Transitions/s that one core plays, at random and with the network, by number of games.

    python benchmarks/player_rate.py [--players 1 4 16] [--seconds 3] [--rom breakout.bin]

The process is confined to one core, as an actor would be on a machine where each core plays. The
network has random weights and runs on this core too, once a tick for all games that do not act at
random. docs/scaling.md says how many cores a learner needs.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from _report import say

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "DeepQNetwork"))

from DQNModel import Model
from r4_filling import rate_of

from tensorpack.predict import OfflinePredictor, PredictConfig
from tensorpack.RL import Agent, AtariPlayers, ReplayMemory, Simulator, find_rom
from tensorpack.tfutils import JustCurrentSession

EXPLORATION = (1.0, 0.1)
HISTORY = 4


def rate(rom, games, exploration, seconds):
    """Transitions a second."""
    with AtariPlayers(rom, num_envs=games, seed=0) as player:
        model = Model(player.num_actions)
        config = PredictConfig(model, None, JustCurrentSession(), ["state"], ["Qvalue"])
        with OfflinePredictor(config) as predictor:
            memory = ReplayMemory(100000, player.frame_shape, history=HISTORY, lanes=games)
            agent = Agent(predictor, player, HISTORY, np.random.RandomState(0))
            simulator = Simulator(player, memory, agent)
            simulator.begin()
            for _ in range(20):
                simulator.tick(exploration)
            return rate_of(lambda: simulator.tick(exploration), seconds)


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--players", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rom", default="breakout.bin")
    args = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    rom = find_rom(args.rom)
    say("games  " + "  ".join(f"exploration {each:g}" for each in EXPLORATION))
    for games in args.players:
        rates = [rate(rom, games, each, args.seconds) for each in EXPLORATION]
        say(f"{games:5}  " + "  ".join(f"{each:15.0f}" for each in rates))


if __name__ == "__main__":
    main()
