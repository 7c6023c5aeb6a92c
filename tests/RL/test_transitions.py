"""What is sampled is what happened: transitions, against a slow derivation from the players.

A player is recorded while a `Simulator` fills a memory with it. `Record` is all that a player said
about one environment; it derives every transition of one or of n steps from the record, with lists
and loops alone, and which of them a memory of this size must hold.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorpack.RL import Agent, AtariPlayers, Player, PlayerStep, ReplayMemory, Simulator
from tests.RL.players import breakout_rom, needs_vector
from tests.tiers import first_fast

STEPS = [1, 2, 3, 7]


class Recorded(Player):
    """Another player; keeps what it says, a `Record` for each environment."""

    def __init__(self, player):
        self._player = player
        self.num_envs, self.num_actions = player.num_envs, player.num_actions
        self.frame_shape, self.frame_dtype = player.frame_shape, player.frame_dtype
        self.records = [Record() for _ in range(player.num_envs)]

    def _reset(self, seed):
        frames = self._player.reset(seed)
        for env, record in enumerate(self.records):
            record.begin(frames[env].copy())
        return frames

    def _step(self, actions):
        step = self._player.step(actions)
        taken = actions if step.taken is None else step.taken
        for env, record in enumerate(self.records):
            record.note(int(taken[env]), [column[env].copy() for column in step[:7]])
        return step


class Record:
    """What a player said about one environment: a list of games, each of steps.

    A step is [frame before, action, reward, terminated, truncated, life lost, frame after].
    """

    def __init__(self):
        self.games = []

    def begin(self, frame):
        self.games.append([])
        self._frame = frame

    def note(self, action, column):
        frame, reward, terminated, truncated, life_lost, reset, _ = column
        if reset:
            self.begin(frame)
        else:
            step = [self._frame, action, reward, terminated, truncated, life_lost, frame]
            self.games[-1].append(step)
            self._frame = frame

    def episodes(self, life_loss_ends):
        """The games, cut where a life was lost if that ends an episode; without empty ones."""
        episodes = []
        for game in self.games:
            episodes.append([])
            for step in game:
                episodes[-1].append(step)
                if life_loss_ends and step[5]:
                    episodes.append([])
        return [episode for episode in episodes if episode]

    def held(self, size, history, n, life_loss_ends):
        """The transitions of up to n steps that a memory with so many entries a lane can sample."""
        episodes = self.episodes(life_loss_ends)
        ends = [how_it_ends(episode[-1], life_loss_ends) for episode in episodes]
        # An episode that was cut off takes an entry for its last frame.
        entries = [len(episode) + (end == "cut") for episode, end in zip(episodes, ends)]
        rows, first, oldest = [], 0, sum(entries) - size
        for episode, end, count in zip(episodes, ends, entries):
            # The frame after the newest step is not stored yet, or never, if its game was left.
            known = len(episode) if end else len(episode) - 1
            for place in range(known):
                if first + max(0, place - history + 1) >= oldest:
                    next_place = min(place + n, known)
                    rows.append(transition(episode, place, next_place, history, n, end))
            first += count
        return rows


def how_it_ends(step, life_loss_ends):
    if step[3] or (life_loss_ends and step[5]):
        return "over"
    return "cut" if step[4] else ""


def transition(episode, place, next_place, history, n, end):
    """(frames, action, rewards, terminated, steps), with the frames of both states."""
    frames = [step[0] for step in episode] + [episode[-1][6]]
    black = np.zeros_like(frames[0])
    over = next_place == len(episode) and end == "over"
    if over:
        frames[-1] = black
    states = [([black] * history + frames[: at + 1])[-history:] for at in (place, next_place)]
    rewards = [step[2] for step in episode[place:next_place]]
    rewards += [0.0] * (n - len(rewards))
    return np.stack(states[0] + states[1]), episode[place][1], rewards, over, next_place - place


def as_key(frames, action, rewards, terminated, steps):
    rewards = np.asarray(rewards, np.float32).tolist()
    return (np.asarray(frames).tobytes(), int(action), tuple(rewards), bool(terminated), int(steps))


def sampled(memory, n, rng):
    """64 transitions as keys; a single step has the frames of its two states as n steps have."""
    batch = memory.sample(64, rng, steps=n)
    if n > 1:
        return {as_key(*row) for row in zip(*batch)}
    states = np.concatenate([batch.frames[:, :-1], batch.frames[:, 1:]], axis=1)
    rows = zip(states, batch.action, batch.reward[:, None], batch.terminated)
    return {as_key(*row, 1) for row in rows}


def check(player, memory, size, life_loss_ends, steps=STEPS):
    """Samples until all transitions have been seen, and sees no others."""
    for n in steps:
        history = memory._layout.history
        rows = [row for r in player.records for row in r.held(size, history, n, life_loss_ends)]
        assert memory.num_sampleable == len(rows)
        expected, seen = {as_key(*row) for row in rows}, set()
        rng = np.random.RandomState(0)
        for _ in range(len(rows)):  # one is missed with a probability of e^-64
            if seen == expected:
                break
            seen |= sampled(memory, n, rng)
            assert seen <= expected
        assert seen == expected


def simulate(player, size, life_loss_ends, history=4):
    """A memory with so many entries a lane, what fills it, and the recorded player."""
    recorded = Recorded(player)
    dtype = np.dtype(player.frame_dtype).type
    lanes = player.num_envs
    memory = ReplayMemory(size * lanes, player.frame_shape, history, lanes, dtype)
    agent = Agent(None, recorded, history, np.random.RandomState(0))
    simulator = Simulator(recorded, memory, agent, life_loss_ends)
    return memory, simulator, recorded


class Scripted(Player):
    """Environments that go through lists of events, one a step, then through them again.

    Events: "." nothing, "l" a life lost, "t" terminated, "c" cut off, "b" both a life lost and cut
    off. Every frame and every reward of an environment is another one; "l" takes action 0.
    """

    num_actions = 5
    frame_shape = (2,)
    frame_dtype = np.dtype(np.int32)

    def __init__(self, scripts):
        self.num_envs = len(scripts)
        self._scripts = scripts
        self._places = np.zeros(len(scripts), int)
        self._ended = np.zeros(len(scripts), bool)
        self._clock = 0

    def _reset(self, seed):
        self._ended[:] = False
        return self._frames()

    def _step(self, actions):
        begins = self._ended
        events = np.array([s[p % len(s)] for s, p in zip(self._scripts, self._places)])
        events[begins] = "r"
        self._places += ~begins
        self._ended = np.isin(events, ["t", "c", "b"])
        flags = [np.isin(events, list(names)) for names in ("t", "cb", "lb", "r")]
        frames = self._frames()
        reward = np.where(begins, 0, frames[:, 0] / 8).astype(np.float32)
        taken = np.where(events == "l", 0, actions)
        return PlayerStep(frames, reward, *flags, np.where(self._ended, 1.0, np.nan), taken)

    def _frames(self):
        self._clock += 1
        return np.stack([1000 * np.arange(self.num_envs) + self._clock] * 2, axis=1).astype("i4")


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.text("...ltcb", min_size=1, max_size=12), min_size=1, max_size=3),
    st.integers(1, 4),
    st.integers(1, 26),
    st.booleans(),
    st.lists(st.integers(1, 25), min_size=1, max_size=3),
    st.integers(1, 35),
)
def test_any_stream(scripts, history, more, life_loss_ends, pauses, n):
    size = history + more
    memory, simulator, player = simulate(Scripted(scripts), size, life_loss_ends, history)
    simulator.begin()
    for ticks in pauses:
        for _ in range(ticks):
            simulator.tick(1.0)
        if memory.num_sampleable:
            check(player, memory, size, life_loss_ends, steps=[1, n])


@pytest.mark.parametrize("life_loss_ends", [True, False])
def test_games_that_begin_again_before_their_end(life_loss_ends):
    memory, simulator, player = simulate(Scripted(["..l...", "....t."]), 25, life_loss_ends)
    for _ in range(4):  # as in a run that is resumed without its games
        simulator.begin()
        for _ in range(9):
            simulator.tick(1.0)
        check(player, memory, 25, life_loss_ends)


@pytest.mark.parametrize("interface", first_fast(["single", "vector"]))
@pytest.mark.parametrize("life_loss_ends", first_fast([True, False]))
def test_breakout(interface, life_loss_ends):
    if interface == "vector":
        needs_vector()
    options = {"num_envs": 2, "backend": interface, "max_episode_actions": 130, "seed": 3}
    modern = {} if life_loss_ends else {"sticky": 0.25, "fire_on_reset": True}
    with AtariPlayers(breakout_rom(), **options, **modern) as player:
        memory, simulator, recorded = simulate(player, 70, life_loss_ends)
        simulator.begin()
        for ticks in (50, 90, 97, 98):  # not full, after lost lives, cuts, and the wrap-around
            for _ in range(ticks):
                simulator.tick(1.0)
            check(recorded, memory, 70, life_loss_ends, steps=[1, 3])
    steps = [step for record in recorded.records for game in record.games for step in game]
    assert any(step[5] for step in steps) and any(step[4] for step in steps)
