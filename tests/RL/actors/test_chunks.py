"""What an actor plays comes to the memory of a learner as if it had been played there."""

import numpy as np
import pytest

from tensorpack.RL import Agent, ReplayMemory, Simulator
from tensorpack.RL.actors.chunks import Recorder, store_chunk
from tests.RL.catch import CatchPlayer
from tests.RL.test_simulator import Script

FIRST_LANE = 2  # of the actor


class Lives(CatchPlayer):
    """Loses a life in the third step, and is cut off after the fifth one."""

    def _step(self, actions):
        step = super()._step(actions)
        cut = self._row == 5
        self._over |= cut
        score = np.where(cut, 0.0, step.episode_score)
        return step._replace(life_lost=self._row == 3, truncated=cut, episode_score=score)


def simulate(player, memory, rng=0):
    agent = Agent(None, player, 4, np.random.RandomState(rng))
    simulator = Simulator(player, memory, agent)
    simulator.begin()
    return simulator


def sampled(memory, lanes):
    """The entries of some lanes, as they are in the memory."""
    size = memory._rings.lane_size
    rows = np.concatenate([np.arange(lane * size, (lane + 1) * size) for lane in lanes])
    return [column[rows] for column in (*memory._columns.values(), memory._sampleable)]


class Forgets(CatchPlayer):
    """Two games are cut off after each fifth step, between two steps."""

    _steps = 0

    def _step(self, actions):
        step = super()._step(actions)
        self._steps += 1
        if self._steps % 5 == 0:
            self.truncate(np.array([True, False, True]))
        return step


@pytest.mark.parametrize("make_player", [CatchPlayer, Lives, Forgets])
def test_the_memory_is_the_same_as_without_chunks(make_player):
    here, there = ReplayMemory(120, (14, 14), 4, 3), ReplayMemory(200, (14, 14), 4, 5)
    direct, recorder = simulate(make_player(3, cell=2), here), Recorder()
    remote = simulate(make_player(3, cell=2), recorder)
    counts = [sum(simulator.tick(1.0) for _ in range(9)) for simulator in (direct, remote)]
    lanes = np.arange(3) + FIRST_LANE
    assert len(recorder) == counts[0] == counts[1]
    assert store_chunk(there, recorder.take(), lanes) == counts[0]
    for _ in range(60):
        direct.tick(1.0)
        if remote.tick(1.0):
            store_chunk(there, recorder.take(), lanes)
    assert len(recorder) == 0
    for ours, theirs in zip(sampled(here, range(3)), sampled(there, lanes)):
        np.testing.assert_array_equal(ours, theirs)
    assert len(there) == len(here) and there.num_sampleable == here.num_sampleable > 50


@pytest.mark.parametrize(
    "change",
    [
        {"lanes": np.array([0, 1])},
        {"lanes": np.array([0])},
        {"lanes": "here"},
        {"begins": np.array([0, 1])},
        {"ticks": np.array([1])},
        {"ticks": np.array([3, -1])},
        {"truncated": np.array([False, True])},
        {"truncated": np.array([0, 0])},
        {"actions": np.array([0.5, 1.5])},
        {"frames": np.zeros((2, 3, 3), np.uint8)},
    ],
)
def test_what_is_no_chunk_of_these_games_is_refused(change):
    recorder = Recorder()
    simulator = simulate(Script(".."), recorder)
    for _ in range(2):
        simulator.tick(1.0)
    memory, chunk = ReplayMemory(20, (1, 1), 2), recorder.take()
    with pytest.raises((TypeError, ValueError)):
        store_chunk(memory, {**chunk, **change}, np.array([0]))
    assert len(memory) == 0
    assert store_chunk(memory, chunk, np.array([0])) == 2
