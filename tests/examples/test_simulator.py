"""The simulator: what it stores, which scores it reports, and its thread."""

import threading
import time

import numpy as np
import pytest
from agent import Agent
from budget import TransitionBudget
from gate import Gate
from scores import Scores
from simulator import Simulator, SimulatorThread

from tensorpack.RL import Player, PlayerStep, ReplayMemory
from tensorpack.utils.concurrency import guard_thread
from tests.examples.catch import CatchPlayer

HISTORY = 2


class Script(Player):
    """One environment that goes through a list of events, one a step, whatever the action.

    Events: "." nothing, "l" a life lost, "t" terminated, "c" cut off. The step after "t" and "c"
    begins a new game and is not in the list. Frame k of the run has the value k, from 1; every
    action has reward 3.
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


class Asked:
    """A network that prefers action 1; keeps the states it was asked about."""

    def __init__(self):
        self.states = []

    def __call__(self, states):
        self.states.extend(states[:, 0, 0].tolist())
        return [np.tile([0.0, 1.0], (len(states), 1))]


class Played:
    """A script that was played to its end, by the network."""

    def __init__(self, events, ticks):
        player, self.scores, self.network = Script(events), Scores(), Asked()
        self.memory = ReplayMemory(100, (1, 1), history=HISTORY)
        agent = Agent(self.network, player, HISTORY, np.random.RandomState(0))
        simulator = Simulator(player, self.memory, agent, self.scores)
        simulator.begin()
        self.stored = [simulator.tick(epsilon=0.0) for _ in range(ticks)]

    def transitions(self):
        """All that can be sampled: (frames, action, reward, over), each once, sorted."""
        batch = self.memory.sample(500, np.random.RandomState(0))
        rows = zip(batch.frames[:, :, 0, 0].tolist(), *(each.tolist() for each in batch[1:]))
        return sorted({(tuple(frames), *rest) for frames, *rest in rows})


def test_a_transition_is_the_frame_before_and_what_came_of_the_action():
    # frame   1 2 3 4
    played = Played("...", ticks=3)
    assert played.stored == [1, 1, 1]
    assert played.transitions() == [((0, 1, 2), 1, 3.0, False), ((1, 2, 3), 1, 3.0, False)]
    assert played.network.states == [[0, 1], [1, 2], [2, 3]]


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
    assert played.network.states[-2:] == [[0, 4], [4, 5]]


def test_a_lost_life_ends_the_episode_but_not_the_game():
    # frame   1 2 3 4
    # event     l . t
    played = Played("l.t", ticks=3)
    assert played.transitions() == [
        ((0, 1, 0), 1, 3.0, True),
        ((0, 2, 3), 1, 3.0, False),
        ((2, 3, 0), 1, 3.0, True),
    ]
    assert played.network.states == [[0, 1], [0, 2], [2, 3]]
    assert played.scores.take() == [9.0]


def test_a_game_that_is_cut_off_would_have_gone_on():
    # frame   1 2 3 | 4 5
    # event     . c   r .
    played = Played(".c..", ticks=4)
    assert ((1, 2, 3), 1, 3.0, False) in played.transitions()
    assert played.scores.take() == [6.0]


def test_several_environments_have_a_lane_each():
    player, memory, scores = CatchPlayer(num_envs=3), ReplayMemory(300, (84, 84), 4, 3), Scores()
    agent = Agent(None, player, 4, np.random.RandomState(0))
    simulator = Simulator(player, memory, agent, scores)
    simulator.begin()
    # six steps and one that begins the next game
    assert [simulator.tick(1.0) for _ in range(14)] == ([3] * 6 + [0]) * 2
    assert len(memory) == 36
    assert len(scores.take()) == 6


class CountingSimulator:
    """Stores four transitions a tick; the tick number `fails_at` raises."""

    def __init__(self, fails_at=None):
        self.ticks = []
        self._fails_at = fails_at

    def tick(self, epsilon):
        self.ticks.append(epsilon)
        if len(self.ticks) == self._fails_at:
            raise OSError("the emulator broke")
        return 4


def wait_until(condition):
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def run_thread():
    """Starts a SimulatorThread, which is stopped and joined after the test."""
    threads = []

    def run(simulator, budget, epsilon=lambda: 0.5, on_error=None, gate=None):
        thread = SimulatorThread(simulator, budget, epsilon, gate or Gate())
        if on_error is not None:
            guard_thread(thread, on_error)
        # it wants the session that is the default one; what it plays with here needs none
        thread.default_sess = threading.Lock
        thread.start()
        threads.append(thread)
        return thread

    yield run
    for thread in threads:
        thread.stop()
        thread.join(5)


def test_the_thread_plays_what_is_granted_and_no_more(run_thread):
    simulator, budget = CountingSimulator(), TransitionBudget(grant=8)
    epsilons = iter([1.0, 0.9, 0.8, 0.7])
    run_thread(simulator, budget, lambda: next(epsilons))
    budget.grant()
    budget.grant()
    wait_until(lambda: len(simulator.ticks) == 4)
    time.sleep(0.05)
    assert simulator.ticks == [1.0, 0.9, 0.8, 0.7]


def test_stopping_wakes_the_thread(run_thread):
    thread = run_thread(CountingSimulator(), TransitionBudget(grant=1))
    thread.stop()
    thread.join(5)
    assert not thread.is_alive()


def test_an_error_goes_to_who_guards_the_thread(run_thread):
    errors, budget = [], TransitionBudget(grant=8)
    thread = run_thread(CountingSimulator(fails_at=2), budget, on_error=errors.append)
    budget.grant()
    thread.join(5)
    assert [str(error) for error in errors] == ["the emulator broke"]


def test_the_thread_does_nothing_in_a_pause_of_its_gate(run_thread):
    simulator, budget, gate = CountingSimulator(), TransitionBudget(grant=8), Gate()
    with gate.pause():
        run_thread(simulator, budget, gate=gate)
        budget.grant()
        time.sleep(0.05)
        assert (simulator.ticks, budget.open) == ([], 8)
    wait_until(lambda: budget.open == 0)
    assert len(simulator.ticks) == 2
