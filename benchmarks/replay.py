"""R4 and R7: filling the replay memory by play, and sampling batches from it."""

import itertools
from pathlib import Path

import numpy as np
from _clock import per_second
from _contest import Contest, itself
from _programs import example

from tensorpack.RL import AtariPlayers, PrioritizedReplay, ReplayMemory, find_rom

FRAME, HISTORY, BATCH = (84, 84), 4, 64
TARGETS = {  # ms
    (100000, ""): "<= 0.25",
    (1000000, ""): "<= 0.4",
    (1000000, ", prioritised"): "<= 1",
}


def filling(players=(1, 8), seconds=3.0, rom="breakout.bin"):
    """Filling the replay memory by random play against the bare vector environment.

    In steps of the games per second, an action each, of four emulator frames. Needs an ale-py with
    `ALEVectorInterface`.
    """
    example("DeepQNetwork")
    game = find_rom(rom)
    for count in players:
        yield Contest(
            f"filling the memory / bare environments, players: {count}",
            {
                "filling": lambda count=count: filled_by(game, count, seconds),
                "bare": lambda count=count: bare(game, count, seconds),
            },
            unit="/s",
            target=">= 0.95",
        )


def filled_by(game, players, seconds):
    """Transitions per second while the example populates its memory."""
    from tensorpack.RL import Agent, Simulator

    with AtariPlayers(game, num_envs=players, seed=0) as player:
        memory = ReplayMemory(100000, player.frame_shape, history=HISTORY, lanes=players)
        agent = Agent(None, player, HISTORY, np.random.RandomState(0))
        simulator = Simulator(player, memory, agent)
        simulator.begin()
        return rate_of(lambda: simulator.tick(1.0), seconds, players)


def bare(game, players, seconds):
    """Steps per second of the vector interface alone, with random actions."""
    from ale_py import ALEVectorInterface

    envs = ALEVectorInterface(
        Path(game),
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

    envs.reset(np.arange(players), np.arange(players))
    return rate_of(tick, seconds, players)


def rate_of(function, seconds, each=1):
    """Calls per second, or how many of what each call does."""
    calls = (function() for _ in itertools.count())
    return per_second(calls, seconds, each, warm_up=0.0)


def sampling(frames=(100000, 1000000), seconds=0.1):
    """Sampling a batch from the replay memory beside one bare numpy gather.

    A batch is 64 x (84, 84, 5), uint8. Prioritised, the priorities of a batch are set after it.
    "gather" is one `take` of as many random runs of frames from a bare array. A million frames take
    7 GB: `--frames 100000` where that is too much.
    """
    for (count, kind), target in ((key, TARGETS[key]) for key in TARGETS if key[0] in frames):
        memory = filled(count, PrioritizedReplay if kind else ReplayMemory)
        calls = {"ours": make_ours(memory, kind), "bare gather": make_gather(memory._frames)}
        yield Contest(
            f"sampling 64 x (84, 84, 5) of {count:,} frames{kind}",
            {name: lambda call=call: 1000 / rate_of(call, seconds) for name, call in calls.items()},
            unit="ms",
            judge=itself,
            target=target,
        )
        del memory, calls  # two of a million frames may not fit


def filled(frames, make_memory):
    """A full memory of one lane, with an end of an episode now and then."""
    memory = make_memory(frames, FRAME, HISTORY)
    rng = np.random.RandomState(0)
    kinds = rng.randint(256, size=(50, 1, *FRAME)).astype(np.uint8)
    ends = rng.rand(frames) < 0.005
    none, no = np.zeros(1), np.zeros(1, bool)
    for number in range(frames):
        frame = kinds[number % len(kinds)]
        memory.append(frame, none.astype(int), none, ends[number : number + 1], no)
    return memory


def make_ours(memory, kind):
    """Samples as the example does."""
    rng = np.random.RandomState(1)

    def sample():
        if not kind:
            return memory.sample(BATCH, rng)
        batch = memory.sample_weighted(BATCH, rng, 1)
        memory.update_priorities(batch.slot, rng.random_sample(BATCH))
        return batch

    return sample


def make_gather(frames):
    """One `take` of whole frames, from the same memory."""
    rng, around = np.random.RandomState(2), np.arange(HISTORY + 1)

    def gather():
        rows = rng.randint(len(frames) - HISTORY, size=BATCH)[:, None] + around
        batch = np.empty((rows.size, frames.shape[1]), frames.dtype)
        return np.take(frames, rows.reshape(-1), axis=0, out=batch, mode="clip")

    return gather
