"""Plays games and stores transitions, without TensorFlow; a program adds the callback around it.

An `Agent` chooses actions, by any function of states; a `Simulator` steps all games. A program's
`Callback`, such as `ExpReplay` of examples/DeepQNetwork, asks for transitions, saves the state and
starts the `SimulatorThread`, which plays beside the training.
"""

from typing import Any, Callable, Dict, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils.checks import as_count, as_number
from tensorpack.utils.concurrency import ShareSessionThread
from tensorpack.utils.rng import rng_state, set_rng_state

from .episodes import EpisodeCounter
from .history import FrameHistory, epsilon_greedy
from .pacer import Pacer
from .player import Player, PlayerStep


class RandomActions:
    """Random actions in N environments, drawn epsilon-greedily and perhaps repeated.

    The repetitions have lengths of `P(n) ~ n^-2`, at most `repeat` (Dabney et al.,
    "Temporally-Extended epsilon-Greedy Exploration", 2021). There epsilon is the probability that a
    repetition begins, here the fraction of actions that are random, so that schedules mean the same
    with and without repetitions. The stream `rng` is not part of the state.
    """

    def __init__(
        self, num_envs: int, num_actions: int, rng: np.random.RandomState, repeat: int = 1
    ) -> None:
        repeat = as_count(self, "repeat", repeat)
        self._num_actions = num_actions
        self._rng = rng
        weights = np.arange(1, repeat + 1, dtype=float) ** -2
        self._cumulative = np.cumsum(weights / weights.sum())  # P(length <= 1), ...
        self._mean = float(np.arange(1, repeat + 1) @ weights / weights.sum())
        self._actions = np.zeros(num_envs, np.int64)  # those that are repeated
        self._left = np.zeros(num_envs, np.int64)  # how many times more

    def draw(self, epsilon: float) -> Tuple[np.ndarray, np.ndarray]:
        """Draws random actions, int64 `[N]`, and bool `[N]`: True where they are to be taken.

        That is a fraction of `epsilon`, in the long run.
        """
        epsilon = as_number(self, "epsilon", epsilon, least=0.0, most=1.0)
        count = len(self._left)
        actions = self._rng.randint(self._num_actions, size=count).astype(np.int64)
        # Between two repetitions there are (1 - p) / p other actions on the average.
        probability = epsilon / (self._mean * (1 - epsilon) + epsilon)
        begins = self._rng.random_sample(count) < probability
        begins &= self._left == 0
        self._actions[begins] = actions[begins]
        self._left[begins] = self._lengths(int(np.count_nonzero(begins)))
        is_random = self._left > 0
        self._left[is_random] -= 1
        return self._actions.copy(), is_random

    def end(self, environments: np.ndarray) -> None:
        """Ends the repetitions that are under way in some environments, a bool mask `[N]`."""
        self._left[environments] = 0

    def _lengths(self, count: int) -> Any:
        longest = len(self._cumulative)
        if longest == 1:
            return 1
        drawn = np.searchsorted(self._cumulative, self._rng.random_sample(count), "right")
        return np.minimum(drawn + 1, longest)  # the last sum may be less than 1

    def state_dict(self) -> Dict[str, Any]:
        return {"actions": self._actions.copy(), "left": self._left.copy()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores them; repetitions end early where fewer are allowed."""
        self._actions[:] = state["actions"]
        self._left[:] = np.minimum(state["left"], len(self._cumulative) - 1)


class Agent:
    """Acts in N environments, epsilon-greedily, and remembers the last frames of each.

    ::

        agent.observe(player.reset(), starts=np.ones(n, bool))
        repeat:
            step = player.step(agent.act(epsilon))
            agent.observe(step.frames, starts=step.reset)

    Args:
      predict: a predictor: takes `[M, *frame_shape, history]`, the newest frame last, and returns a
        list with the values of the actions, `[M, num_actions]`.
      player: the environments; only its attributes are read.
      history: frames that make one state; those before the start of an episode are black.
      rng, random_repeat: for random actions, see `RandomActions`.
    """

    def __init__(
        self,
        predict: Callable[..., Sequence[Any]],
        player: Player,
        history: int,
        rng: np.random.RandomState,
        random_repeat: int = 1,
    ) -> None:
        self._predict = predict
        self._random = RandomActions(player.num_envs, player.num_actions, rng, random_repeat)
        dtype = np.dtype(player.frame_dtype).type
        self._history = FrameHistory(player.num_envs, player.frame_shape, history, dtype)
        self._rng = rng

    def observe(self, frames: np.ndarray, starts: np.ndarray) -> None:
        """Takes the next frame of each environment, `[N, *frame_shape]`.

        Where `starts`, bool `[N]`, an episode begins: earlier frames are forgotten, and no random
        action is repeated beyond it.
        """
        self._history.push(frames, starts)
        self._random.end(starts)

    def act(self, epsilon: float) -> np.ndarray:
        """Returns an action for each environment, int64 `[N]`, random with probability `epsilon`.

        The network is called once, for the environments that do not act at random.
        """
        actions, is_random = self._random.draw(epsilon)
        greedy = ~is_random
        if greedy.any():
            states = self._history.states(None if greedy.all() else greedy)
            actions[greedy] = self._choose(self._predict(states)[0], self._rng)
        return actions

    def _choose(self, values: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
        """Returns actions `[M]` for values `[M, num_actions]`; override it to explore otherwise."""
        return epsilon_greedy(values, 0.0, rng)

    def state_dict(self) -> Dict[str, Any]:
        """Returns the last frames and the state of the random actions."""
        return {
            "history": self._history.state_dict(),
            "rng": rng_state(self._rng),
            "random": self._random.state_dict(),
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores what `state_dict` returned; ValueError if it is of other environments."""
        self._history.load_state_dict(state["history"])
        set_rng_state(self._rng, state["rng"])
        self._random.load_state_dict(state["random"])


class Simulator(EpisodeCounter):
    """Plays all environments of a player, step after step (`tick`), and fills a replay memory.

    Call it from one thread at a time; only `take_episodes` is thread-safe.

    Args:
      player: the environments; not touched until `begin` or `load_state_dict`.
      memory: a `ReplayMemory`, or what has its `append` and `end_episodes`; gets one frame per
        environment and step, in one lane for each environment. A game that was cut off between two
        steps ends there without a final frame.
      agent: chooses the actions.
      life_loss_ends: whether a lost life ends an episode for learning: its transition is terminal,
        and the agent forgets the frames. The score is always that of the whole game.
    """

    def __init__(
        self, player: Player, memory: Any, agent: Agent, life_loss_ends: bool = True
    ) -> None:
        super().__init__(player.num_envs)
        self._player = player
        self._memory = memory
        self._agent = agent
        self._life_loss_ends = life_loss_ends
        self._frames: Any = None
        self.playing = False  # True if games are under way

    def begin(self) -> None:
        """Begins a new game in each environment; games that were under way are cut off."""
        self._memory.end_episodes()
        self._frames = self._player.reset()
        self.playing = True
        self._lengths[:] = 0
        self._agent.observe(self._frames, starts=np.ones(self._player.num_envs, bool))

    def tick(self, epsilon: float) -> int:
        """Takes one action in each environment, random with probability `epsilon`.

        `playing` must be True. Returns how many transitions were stored, one for each environment
        but those that began a new game.
        """
        actions = self._agent.act(epsilon)
        step = self._player.step(actions)
        if not self._life_loss_ends:
            step = step._replace(life_lost=np.zeros_like(step.life_lost))
        count = self._store(actions if step.taken is None else step.taken, step)
        self._count(step)
        self._frames = step.frames
        self._agent.observe(step.frames, starts=step.reset | step.life_lost)
        return count

    def state_dict(self) -> Dict[str, Any]:
        """Returns the games (None if the player cannot save them) and the agent, not the memory."""
        return {
            "transitions": self.transitions,
            "lengths": self._lengths.copy(),
            "frames": self._frames,
            "agent": self._agent.state_dict(),
            "player": self._player.state_dict() if self._player.can_save else None,
        }

    def load_state_dict(self, state: Dict[str, Any]) -> str:
        """Restores what `state_dict` returned; ValueError if it is of other environments.

        Returns why the games cannot be restored; "" if they are.
        """
        self.transitions = state["transitions"]
        self._agent.load_state_dict(state["agent"])
        reason = restore_games(self._player, state["player"])
        self.playing = not reason
        self._frames = None if reason else np.array(state["frames"])
        self._lengths[:] = 0 if reason else state["lengths"]
        return reason

    def _store(self, actions: np.ndarray, step: PlayerStep) -> int:
        over = step.terminated | step.life_lost
        columns = [self._frames, actions, step.reward, over, step.truncated, step.frames]
        envs = None  # all of them
        if step.reset.any():
            self._memory.end_episodes(np.flatnonzero(step.reset))  # `Player.truncate` ends none
            envs = np.flatnonzero(~step.reset)
            columns = [column[envs] for column in columns]
        *transitions, final_frames = columns
        self._memory.append(*transitions, lanes=envs, final_frames=final_frames)
        return len(final_frames)


def restore_games(player: Player, state: Optional[Dict[str, Any]]) -> str:
    """Restores the games of a player from its state, None if it had none.

    Returns why they cannot be restored, so that new ones must begin; "" if they are.
    """
    if state is None or not player.can_save:
        return "This player does not save games."
    try:
        player.load_state_dict(state)
    except ValueError as error:
        return str(error)
    return ""


class SimulatorThread(ShareSessionThread):
    """Plays what the pacer grants until it is stopped. Its errors go to the guard of the thread.

    Args:
      simulator: only this thread may use it while it runs.
      pacer: grants transitions; each step is one of its pieces of work. Closed by `stop`.
      epsilon: returns the current probability of a random action.
    """

    def __init__(self, simulator: Simulator, pacer: Pacer, epsilon: Callable[[], float]) -> None:
        super().__init__()
        self.name = "SimulatorThread"
        self._simulator = simulator
        self._pacer = pacer
        self._epsilon = epsilon

    def run(self) -> None:
        """Plays; called by `start`."""
        while self._pacer.wait() and not self.stopped():
            with self._pacer:
                self._pacer.spend(self._simulator.tick(self._epsilon()))

    def stop(self) -> None:
        """Asks the thread to end after the current step, and wakes it if it waits."""
        super().stop()
        self._pacer.close()
