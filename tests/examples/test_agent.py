"""The agent: what it remembers of each environment, and when it asks the network."""

import numpy as np
import pytest
from agent import Agent

from tensorpack.RL import Player


class Network:
    """Values one action above the others; keeps what it was asked."""

    def __init__(self, best, num_actions=3):
        self.asked = []
        self._values = np.eye(num_actions)[best]

    def __call__(self, states):
        self.asked.append(states.copy())
        return [np.tile(self._values, (len(states), 1))]


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


def test_the_network_sees_the_last_frames_of_each_newest_last():
    network = Network(best=0)
    agent = make_agent(network)
    for i in range(1, 5):
        agent.observe(frames(i, 10 * i), starts=np.array([False, False]))
    agent.act(0.0)
    assert network.asked[0].shape == (2, 1, 2, 3)
    assert network.asked[0][:, 0, 0].tolist() == [[2, 3, 4], [20, 30, 40]]


def test_an_episode_begins_with_black_frames_and_leaves_the_others_alone():
    network = Network(best=0)
    agent = make_agent(network)
    for i in range(1, 4):
        agent.observe(frames(i, i), starts=np.array([False, False]))
    agent.observe(frames(9, 4), starts=np.array([True, False]))
    agent.act(0.0)
    assert network.asked[0][:, 0, 1].tolist() == [[0, 0, 9], [2, 3, 4]]


def test_without_chance_the_best_action_is_taken_in_one_call():
    network = Network(best=2)
    agent = make_agent(network, num_envs=5)
    agent.observe(frames(*range(5)), starts=np.ones(5, bool))
    actions = agent.act(epsilon=0.0)
    assert (actions.tolist(), actions.dtype) == ([2] * 5, np.int64)
    assert [len(states) for states in network.asked] == [5]


def test_with_chance_alone_the_network_is_not_asked():
    network = Network(best=2)
    agent = make_agent(network)
    actions = np.concatenate([agent.act(epsilon=1.0) for _ in range(300)])
    assert network.asked == []
    assert np.all(np.bincount(actions, minlength=3) > 150)


def test_the_network_is_asked_only_about_those_that_need_it():
    network = Network(best=2)
    agent = make_agent(network, num_envs=100)
    agent.observe(frames(*range(100)), starts=np.ones(100, bool))
    actions = agent.act(epsilon=0.5)
    asked = network.asked[0][:, 0, 0, -1].astype(int)
    assert 25 < len(asked) < 75
    assert np.all(actions[asked] == 2)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.7])
def test_chance_has_its_share(epsilon):
    agent = make_agent(Network(best=1), num_envs=200)
    agent.observe(frames(*range(200)), starts=np.ones(200, bool))
    share = np.mean([agent.act(epsilon) == 1 for _ in range(10)])
    assert share == pytest.approx(1 - epsilon * 2 / 3, abs=0.04)


def test_the_same_seed_acts_the_same():
    acted = []
    for _ in range(2):
        agent = make_agent(Network(best=0), num_envs=50, seed=7)
        agent.observe(frames(*range(50)), starts=np.ones(50, bool))
        acted.append(agent.act(0.5).tolist())
    assert acted[0] == acted[1]


def test_a_state_is_what_was_seen_and_where_chance_is():
    def play(agent, network):
        network.asked.clear()
        actions = [agent.act(0.5).tolist()]
        agent.observe(frames(7, 8), starts=np.array([False, True]))
        actions += [agent.act(0.5).tolist() for _ in range(9)]
        return actions, [asked.tolist() for asked in network.asked]

    networks = Network(best=1), Network(best=1)
    first, second = make_agent(networks[0]), make_agent(networks[1], seed=1)
    for i in range(1, 5):
        first.observe(frames(i, 10 * i), starts=np.array([False, False]))
        first.act(0.5)
    second.load_state_dict(first.state_dict())
    assert play(first, networks[0]) == play(second, networks[1])


def test_a_state_of_other_frames_is_refused():
    with pytest.raises(ValueError):
        make_agent(Network(best=0), num_envs=3).load_state_dict(
            make_agent(Network(best=0)).state_dict()
        )
