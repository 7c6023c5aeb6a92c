"""Who steps which environments, in which thread, and hands their transitions to the memory."""

from typing import Callable

import numpy as np
from agent import Agent
from budget import TransitionBudget
from scores import Scores

from tensorpack.RL import Player, PlayerStep, ReplayMemory
from tensorpack.utils.concurrency import ShareSessionThread

__all__ = ["Simulator", "SimulatorThread"]


class Simulator:
    """Plays all environments of a player, tick after tick, and fills a replay memory.

    A lost life ends an episode for learning: nothing is expected to follow, and the agent forgets
    what it saw. It does not end the game, whose score is counted as a whole. Called by one thread
    at a time.

    Args:
      player: the environments; reset here.
      memory: gets one frame per environment and tick, in one lane for each environment.
      agent: chooses the actions.
      scores: gets the score of each game that ends.
    """

    def __init__(self, player: Player, memory: ReplayMemory, agent: Agent, scores: Scores) -> None:
        self._player = player
        self._memory = memory
        self._agent = agent
        self._scores = scores
        self._frames = player.reset()
        agent.observe(self._frames, starts=np.ones(player.num_envs, bool))

    def tick(self, epsilon: float) -> int:
        """Lets every environment take one action.

        Args:
          epsilon: probability that an action is left to chance.

        Returns:
          how many transitions were stored: one for each environment that did not begin a new game
          instead.
        """
        actions = self._agent.act(epsilon)
        step = self._player.step(actions)
        stored = self._store(actions, step)
        ended = ~np.isnan(step.episode_score)
        if ended.any():
            self._scores.add(step.episode_score[ended].tolist())
        self._frames = step.frames
        self._agent.observe(step.frames, starts=step.reset | step.life_lost)
        return stored

    def _store(self, actions: np.ndarray, step: PlayerStep) -> int:
        over = step.terminated | step.life_lost
        columns = [self._frames, actions, step.reward, over, step.truncated, step.frames]
        lanes = None  # all of them
        if step.reset.any():
            lanes = np.flatnonzero(~step.reset)
            if not len(lanes):
                return 0
            columns = [column[lanes] for column in columns]
        *transitions, final_frames = columns
        self._memory.append(*transitions, lanes=lanes, final_frames=final_frames)
        return len(actions) if lanes is None else len(lanes)


class SimulatorThread(ShareSessionThread):
    """Plays whenever the budget allows, until stopped. An error goes to who guards the thread.

    Args:
      simulator: what plays; nobody else may use it while the thread runs.
      budget: says when; closed by `stop`.
      epsilon: returns the present probability of an action by chance.
    """

    def __init__(
        self, simulator: Simulator, budget: TransitionBudget, epsilon: Callable[[], float]
    ) -> None:
        super().__init__()
        self.name = "SimulatorThread"
        self._simulator = simulator
        self._budget = budget
        self._epsilon = epsilon

    def run(self) -> None:
        """Plays; called by `start`."""
        with self.default_sess():
            while self._budget.wait() and not self.stopped():
                self._budget.spend(self._simulator.tick(self._epsilon()))

    def stop(self) -> None:
        """Asks the thread to end after the tick that is under way, and wakes it if it waits."""
        super().stop()
        self._budget.close()
