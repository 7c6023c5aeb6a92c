"""R4: filling the replay memory by random play against the bare vector environment, in pairs.

    python benchmarks/r4_filling.py [--players 1 8] [--pairs 5] [--seconds 3] [--rom breakout.bin]

Needs an ale-py with `ALEVectorInterface`. Prints environment steps per second (an action each, of
four emulator frames), a row for each number of players: medians, and the median of the ratios.
"""

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
from _report import Measured, report, say

from tensorpack.RL import Agent, AtariPlayers, ReplayMemory, Simulator, find_rom


def rate_of(tick, seconds):
    """How much `tick` returns per second, all in all."""
    total, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        total += tick()
    return total / (time.perf_counter() - start)


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
    rng, strength = np.random.RandomState(0), np.ones(players, np.float32)
    actions = len(envs.get_action_set())

    def tick():
        envs.send(rng.randint(actions, size=players), strength)
        envs.recv()
        return players

    envs.reset(np.arange(players), np.arange(players))
    return rate_of(tick, seconds)


def ours(rom, players, seconds):
    """Transitions per second while the example populates its memory."""
    with AtariPlayers(rom, num_envs=players, seed=0) as player:
        memory = ReplayMemory(100000, player.frame_shape, history=4, lanes=players)
        agent = Agent(None, player, 4, np.random.RandomState(0))
        simulator = Simulator(player, memory, agent)
        simulator.begin()
        return rate_of(lambda: simulator.tick(1.0), seconds)


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--players", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rom", default="breakout.bin")
    args = parser.parse_args()
    rom = find_rom(args.rom)
    figures = []
    say("players    bare/s  filling/s  ratio")
    for players in args.players:
        pairs = [
            (bare(rom, players, args.seconds), ours(rom, players, args.seconds))
            for _ in range(args.pairs)
        ]
        alone, fill = (statistics.median(rates) for rates in zip(*pairs))
        ratio = statistics.median(fill / alone for alone, fill in pairs)
        say(f"{players:7} {alone:9.0f} {fill:10.0f} {ratio:6.3f}")
        label = f"filling the memory / bare environments, players: {players}"
        peer = f"filling {fill:.0f}/s, bare {alone:.0f}/s"
        figures.append(Measured("R4", label, ratio, target=">= 0.95", peer=peer))
    report(*figures)


if __name__ == "__main__":
    main()
