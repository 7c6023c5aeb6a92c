"""R4: filling the replay memory by random play against the bare vector environment, in pairs.

    python benchmarks/r4_filling.py [--players 8] [--pairs 5] [--seconds 4]

Needs an ale-py with `ALEVectorInterface`. Prints environment steps per second (an action each, of
four emulator frames) and the ratio of each pair, the median last.
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "DeepQNetwork"))

from agent import Agent
from scores import Scores
from simulator import Simulator

from tensorpack.RL import AtariPlayers, ReplayMemory, find_rom


def bare(rom, players, seconds):
    """Steps per second of the vector interface alone, with random actions."""
    from ale_py import ALEVectorInterface

    envs = ALEVectorInterface(
        Path(rom),
        num_envs=players,
        stack_num=1,
        reward_clipping=False,
        use_fire_reset=False,
        episodic_life=False,
    )
    rng = np.random.RandomState(0)
    actions = len(envs.get_action_set())
    envs.reset(np.arange(players), np.arange(players))
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        envs.send(rng.randint(actions, size=players), np.ones(players, np.float32))
        envs.recv()
        steps += players
    return steps / (time.perf_counter() - start)


def ours(rom, players, seconds):
    """Transitions per second while the example populates its memory."""
    with AtariPlayers(rom, num_envs=players, seed=0) as player:
        memory = ReplayMemory(100000, player.frame_shape, history=4, lanes=players)
        agent = Agent(None, player, 4, np.random.RandomState(0))
        simulator = Simulator(player, memory, agent, Scores())
        steps, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            steps += simulator.tick(1.0)
        return steps / (time.perf_counter() - start)


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--players", type=int, default=8)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--rom", default="breakout.bin")
    args = parser.parse_args()
    rom, ratios = find_rom(args.rom), []
    for number in range(args.pairs):
        alone = bare(rom, args.players, args.seconds)
        fill = ours(rom, args.players, args.seconds)
        ratios.append(fill / alone)
        sys.stdout.write(
            f"pair {number}: bare {alone:.0f} steps/s, filling {fill:.0f}/s, "
            f"ratio {ratios[-1]:.3f}\n"
        )
    sys.stdout.write(f"median ratio {statistics.median(ratios):.3f}\n")


if __name__ == "__main__":
    main()
