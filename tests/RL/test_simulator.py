"""The agent chooses, the simulator stores and reports games, its thread plays what is granted."""

import numpy as np
import pytest

from tensorpack.RL import (
    Agent,
    Player,
    PlayerStep,
    RandomActions,
    ReplayMemory,
    Simulator,
)
from tests.tiers import first_fast

HISTORY = 2


class Script(Player):
    """One environment that goes through a list of events, one a step, whatever the action.

    Events: "." nothing, "t" terminated, "c" cut off, "r" a new game begins without an end before.
    The step after "t" and "c" begins one, too, and is not in the list. Frame k of the run has the
    value k, from 1; every action has reward 3.
    """

    num_actions = 2
    frame_shape = (1, 1)
    num_envs = 1

    def __init__(self, events):
        self._events = iter(events)
        self._clock = 0
        self._score = 0.0
        self._ended = False

    def _reset(self, seed):
        return self._frame()

    def _step(self, actions):
        event = "r" if self._ended else next(self._events)
        self._ended = event in "tc"
        reward = 0.0 if event == "r" else 3.0
        self._score += reward
        score = self._score if self._ended else np.nan
        if self._ended:
            self._score = 0.0
        flags = [np.array([event == name]) for name in "tclr"]
        return PlayerStep(self._frame(), np.array([reward], np.float32), *flags, np.array([score]))

    def _frame(self):
        self._clock += 1
        return np.full((1, 1, 1), self._clock, np.uint8)


class Network:
    """Values one action above the others; keeps the states of all calls."""

    def __init__(self, best, num_actions=3):
        self.states = []
        self._values = np.eye(num_actions)[best]

    def __call__(self, states):
        self.states.append(states.copy())
        return [np.tile(self._values, (len(states), 1))]


class Played:
    """A script that was played to its end, by the network."""

    def __init__(self, events, ticks):
        player, self.network = Script(events), Network(best=1, num_actions=2)
        self.memory = ReplayMemory(100, (1, 1), history=HISTORY)
        agent = Agent(self.network, player, HISTORY, np.random.RandomState(0))
        self.simulator = Simulator(player, self.memory, agent)
        self.simulator.begin()
        self.stored = [self.simulator.tick(epsilon=0.0) for _ in range(ticks)]

    def states(self):
        """The first pixels of the states that the network was asked about."""
        return np.concatenate(self.network.states)[:, 0, 0].tolist()

    def transitions(self):
        """All that can be sampled: (frames, action, reward, over), each once, sorted."""
        batch = self.memory.sample(500, np.random.RandomState(0))
        rows = zip(batch.frames[:, :, 0, 0].tolist(), *(column.tolist() for column in batch[1:]))
        return sorted({(tuple(frames), *rest) for frames, *rest in rows})


@pytest.mark.fault_row(37)
def test_a_game_that_is_cut_off_between_two_steps_is_not_spliced_with_the_next_one():
    # frame   1 2 3 | 4 5 6
    # event     . . r . t
    played = Played("..r.t", ticks=5)
    assert played.stored == [1, 1, 0, 1, 1]
    assert played.transitions() == [
        ((0, 1, 2), 1, 3.0, False),
        ((0, 4, 5), 1, 3.0, False),
        ((4, 5, 0), 1, 3.0, True),
    ]
    assert played.states() == [[0, 1], [1, 2], [2, 3], [0, 4], [4, 5]]
    assert [episode.length for episode in played.simulator.take_episodes()] == [2]


@pytest.mark.fault_row(37)
def test_the_step_that_begins_a_game_is_not_stored_and_starts_from_black():
    # frame   1 2 3 | 4 5
    # event     . t   r .
    played = Played(".t..", ticks=5)
    assert played.stored == [1, 1, 0, 1, 1]
    assert played.transitions() == [
        ((0, 1, 2), 1, 3.0, False),
        ((0, 4, 5), 1, 3.0, False),
        ((1, 2, 0), 1, 3.0, True),
    ]
    assert played.states()[-2:] == [[0, 4], [4, 5]]


def test_a_game_that_is_cut_off_would_have_continued():
    # frame   1 2 3 | 4 5
    # event     . c   r .
    played = Played(".c..", ticks=4)
    assert ((1, 2, 3), 1, 3.0, False) in played.transitions()
    assert played.simulator.waiting_episodes() == [(2, 6.0, 2)]
    assert played.simulator.take_episodes() == [(2, 6.0, 2)]
    assert played.simulator.take_episodes() == []  # each game is reported once


class Shape(Player):
    """All that an agent asks of a player."""

    num_actions = 3
    frame_shape = (1, 2)

    def __init__(self, num_envs):
        self.num_envs = num_envs


def make_agent(network, num_envs=2, seed=0):
    return Agent(network, Shape(num_envs), history=3, rng=np.random.RandomState(seed))


def frames(*values):
    """A frame for each environment, all of its pixels alike."""
    return np.array([[[value, value]] for value in values], np.uint8)


def test_the_network_is_asked_only_about_those_that_need_it():
    def network(states):
        asked.extend(states[:, 0, 0, -1].astype(int))
        return [np.eye(3)[np.array(asked) % 3]]

    asked = []
    agent = make_agent(network, num_envs=100)
    agent.observe(frames(*range(100)), starts=np.ones(100, bool))
    actions = agent.act(epsilon=0.5)
    assert 25 < len(asked) < 75
    np.testing.assert_array_equal(actions[asked], np.array(asked) % 3)


def test_a_state_is_what_was_seen_and_where_chance_is():
    def play(agent, network):
        network.states.clear()
        actions = [agent.act(0.5).tolist()]
        agent.observe(frames(7, 8), starts=np.array([False, True]))
        actions += [agent.act(0.5).tolist() for _ in range(9)]
        return actions, [states.tolist() for states in network.states]

    networks = Network(best=1), Network(best=1)
    first, second = make_agent(networks[0]), make_agent(networks[1], seed=1)
    for i in range(1, 5):
        first.observe(frames(i, 10 * i), starts=np.array([False, False]))
        first.act(0.5)
    second.load_state_dict(first.state_dict())
    assert play(first, networks[0]) == play(second, networks[1])


def draw_many(repeat, epsilon, ticks=20000, seed=0):
    """Returns the actions of two environments, `[ticks, 2]`, -1 where they are not random."""
    random = RandomActions(2, 7, np.random.RandomState(seed), repeat)
    drawn = [random.draw(epsilon) for _ in range(ticks)]
    return np.array([np.where(chosen, actions, -1) for actions, chosen in drawn])


def lengths(column):
    """How long each random action of an environment was repeated; longer where two follow."""
    edges = np.flatnonzero(np.diff(column)) + 1
    return [len(run) for run in np.split(column, edges) if run[0] >= 0]


@pytest.mark.parametrize("repeat", first_fast([1, 2, 100], 2))
@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_epsilon_is_the_share_of_random_actions(repeat, epsilon):
    actions = draw_many(repeat, epsilon)
    assert np.mean(actions >= 0) == pytest.approx(epsilon, rel=0.1)
    assert np.bincount(actions[actions >= 0]).min() > 0.8 * epsilon * 40000 / 7
    assert np.mean(actions[:, 0] == actions[:, 1]) < 1 - epsilon + epsilon**2  # independent


def test_what_is_no_share_is_refused():
    with pytest.raises(ValueError, match="RandomActions: epsilon must be a finite number"):
        draw_many(3, 1.5, ticks=1)


def test_n_repetitions_come_once_in_n_squared():
    counts = np.bincount(lengths(draw_many(3, 0.1)[:, 0]), minlength=4)[1:4]
    shares = counts / counts.sum()
    assert shares == pytest.approx(np.array([36, 9, 4]) / 49, rel=0.2)


def repeating(random):
    """Draws until an action is to be repeated more than three times more; returns where."""
    while not (random._left > 3).any():
        random.draw(0.5)
    return int(np.argmax(random._left))


def test_a_repetition_ends_where_it_is_told_to():
    random = RandomActions(3, 50, np.random.RandomState(0), 100)
    where = repeating(random)
    random.end(np.arange(3) != where)
    assert random.draw(0.0)[1].tolist() == [i == where for i in range(3)]
    random.end(np.arange(3) == where)
    assert not random.draw(0.0)[1].any()


def test_a_restored_state_continues_like_the_saved_one():
    first, second = (RandomActions(3, 50, np.random.RandomState(0), 100) for _ in range(2))
    repeating(first)
    second.load_state_dict(first.state_dict())
    second._rng.set_state(first._rng.get_state())
    for _ in range(20):
        for ours, theirs in zip(first.draw(0.5), second.draw(0.5)):
            np.testing.assert_array_equal(ours, theirs)
