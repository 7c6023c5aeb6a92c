"""Who steps which environments, in which thread, and hands their transitions to the memory."""

from typing import Any, Callable, Dict, Optional

import numpy as np
from agent import Agent
from budget import TransitionBudget
from gate import Gate
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
      player: the environments; left alone until `begin` or `load_state_dict`.
      memory: gets one frame per environment and tick, in one lane for each environment.
      agent: chooses the actions.
      scores: gets the score of each game that ends.

    Attributes:
      transitions: how many were stored so far, by this object.
    """

    def __init__(self, player: Player, memory: ReplayMemory, agent: Agent, scores: Scores) -> None:
        self._player = player
        self._memory = memory
        self._agent = agent
        self._scores = scores
        self._frames: Optional[np.ndarray] = None
        self.transitions = 0

    @property
    def playing(self) -> bool:
        """Whether there are games that `tick` goes on with."""
        return self._frames is not None

    def begin(self) -> None:
        """Begins a new game everywhere; games that were under way are cut off."""
        self._memory.end_episodes()
        self._frames = self._player.reset()
        self._agent.observe(self._frames, starts=np.ones(self._player.num_envs, bool))

    def tick(self, epsilon: float) -> int:
        """Lets every environment take one action. Only when `playing`.

        Args:
          epsilon: probability that an action is left to chance.

        Returns:
          how many transitions were stored: one for each environment that did not begin a new game
          instead.
        """
        actions = self._agent.act(epsilon)
        step = self._player.step(actions)
        stored = self._store(actions, step)
        self.transitions += stored
        ended = ~np.isnan(step.episode_score)
        if ended.any():
            self._scores.add(step.episode_score[ended].tolist())
        self._frames = step.frames
        self._agent.observe(step.frames, starts=step.reset | step.life_lost)
        return stored

    def state_dict(self) -> Dict[str, Any]:
        """Returns the games and the agent as they are between two ticks; not the memory.

        `player` is None if the player cannot save its games.
        """
        return {
            "frames": self._frames,
            "agent": self._agent.state_dict(),
            "player": self._player.state_dict() if self._player.can_save else None,
        }

    def load_state_dict(self, state: Dict[str, Any]) -> str:
        """Takes back what `state_dict` returned.

        Returns:
          why there are no games to go on with; "" if there are.

        Raises:
          ValueError: the state is of other frames, or of another number of environments.
        """
        self._agent.load_state_dict(state["agent"])
        self._frames = None
        if state["player"] is None or not self._player.can_save:
            return "This player does not save games."
        try:
            self._player.load_state_dict(state["player"])
        except ValueError as error:
            return str(error)
        self._frames = np.array(state["frames"])
        return ""

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
      gate: each tick, together with what it costs, is a piece of work of this gate.
    """

    def __init__(
        self,
        simulator: Simulator,
        budget: TransitionBudget,
        epsilon: Callable[[], float],
        gate: Gate,
    ) -> None:
        super().__init__()
        self.name = "SimulatorThread"
        self._simulator = simulator
        self._budget = budget
        self._epsilon = epsilon
        self._gate = gate

    def run(self) -> None:
        """Plays; called by `start`."""
        with self.default_sess():
            while self._budget.wait() and not self.stopped():
                with self._gate.piece():
                    self._budget.spend(self._simulator.tick(self._epsilon()))

    def stop(self) -> None:
        """Asks the thread to end after the tick that is under way, and wakes it if it waits."""
        super().stop()
        self._budget.close()
