"""Plays N games by the policy: rollouts, what happened in some ticks of all games; evaluations."""

from typing import Any, Callable, Dict, List, NamedTuple, Sequence

import numpy as np

from tensorpack.contrib.games import Evaluator
from tensorpack.RL import EpisodeCounter, FrameHistory, Player, PlayerStep, restore_games
from tensorpack.utils.rng import rng_state, set_rng_state


class Rollout(NamedTuple):
    """T ticks of N games. Learn from those that are `chosen`."""

    states: np.ndarray  # [T, N, *frame_shape, history], before the actions
    actions: np.ndarray  # int64 [T, N]
    rewards: np.ndarray  # float32 [T, N], as the game gives them
    over: np.ndarray  # bool [T, N], nothing follows in the episode
    truncated: np.ndarray  # bool [T, N], the next state is the last of its game; see also `over`
    chosen: np.ndarray  # bool [T, N], False: a new game began, or the player acted by itself
    values: np.ndarray  # float32 [T + 1, N], of the states and of those after the last actions


class Actor(EpisodeCounter):
    """Acts in N games, each action drawn from the policy.

    A tick is one call of the network for all games, and one action in each of them. A game that has
    ended needs a tick to begin again, which is no transition.

    Args:
      player: the games; not touched until `begin` or `load_state_dict`.
      history: frames that make one state; those before the start of an episode are black.
      life_loss_ends: whether a lost life ends an episode for learning, so that earlier frames are
        forgotten. It never ends a game, whose score is counted as a whole.
      rng: draws the actions.
    """

    def __init__(
        self, player: Player, history: int, life_loss_ends: bool, rng: np.random.RandomState
    ) -> None:
        super().__init__(player.num_envs)
        dtype = np.dtype(player.frame_dtype).type
        self._player = player
        self._history = FrameHistory(player.num_envs, player.frame_shape, history, dtype)
        self._life_loss_ends = life_loss_ends
        self._rng = rng
        self.playing = False  # True if games are under way

    def begin(self) -> None:
        """Begins a new game everywhere."""
        self._lengths[:] = 0
        self._history.push(self._player.reset(), np.ones(self._player.num_envs, bool))
        self.playing = True

    def play(self, predict: Callable[..., Sequence[Any]], length: int) -> Rollout:
        """Plays a rollout; `playing` must be True.

        Args:
          predict: a predictor: takes states `[N, *frame_shape, history]`, returns the
            probabilities of the actions, `[N, A]`, and the values of the states, `[N]`.
          length: T, ticks.
        """
        states, values, actions, steps = [], [], [], []
        for _ in range(length):
            states.append(self._history.states())
            policy, value = predict(states[-1])
            values.append(value)
            actions.append(sample_actions(policy, self._rng))
            steps.append(self._player.step(actions[-1]))
            self._observe(steps[-1])
        values.append(predict(self._history.states())[1])
        reset = np.stack([step.reset for step in steps])
        truncated = np.stack([step.truncated for step in steps])
        truncated[:-1] |= reset[1:]  # also between two steps, by `Player.truncate`
        taken = [act if step.taken is None else step.taken for act, step in zip(actions, steps)]
        return Rollout(
            states=np.stack(states),
            actions=np.stack(actions),
            rewards=np.stack([step.reward for step in steps]),
            over=np.stack([self._over(step) for step in steps]),
            truncated=truncated,
            chosen=~reset & np.equal(taken, actions),
            values=np.stack(values),
        )

    def _over(self, step: PlayerStep) -> np.ndarray:
        return step.terminated | step.life_lost if self._life_loss_ends else step.terminated

    def _observe(self, step: PlayerStep) -> None:
        starts = step.reset | step.life_lost if self._life_loss_ends else step.reset
        self._history.push(step.frames, starts)
        self._count(step)

    def state_dict(self) -> Dict[str, Any]:
        """Returns all that the next actions depend on, but for the weights.

        `player` is None if the player cannot save its games.
        """
        return {
            "transitions": self.transitions,
            "lengths": self._lengths.copy(),
            "history": self._history.state_dict(),
            "player": self._player.state_dict() if self._player.can_save else None,
            "rng": rng_state(self._rng),
        }

    def load_state_dict(self, state: Dict[str, Any]) -> str:
        """Restores what `state_dict` returned.

        Returns:
          why the games cannot be restored, so that new ones must begin; "" if they are.
        """
        self.transitions = state["transitions"]
        set_rng_state(self._rng, state["rng"])
        lost = restore_games(self._player, state["player"])
        if lost:
            return lost
        self._history.load_state_dict(state["history"])
        self._lengths[:] = state["lengths"]
        self.playing = True
        return ""


def sample_actions(policy: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Draws an action for each row of probabilities, int64 `[N]`.

    Args:
      policy: `[N, A]`, each row adds up to 1 but for rounding.
      rng: draws one number for each row.
    """
    bounds = np.cumsum(policy, axis=1, dtype=np.float64)
    draws = rng.random_sample((len(policy), 1)) * bounds[:, -1:]
    return np.count_nonzero(bounds[:, :-1] <= draws, axis=1).astype(np.int64)


def sampling(
    predict: Callable[..., Sequence[Any]], rng: np.random.RandomState
) -> Callable[..., Sequence[Any]]:
    """Lets what plays the best action play by the policy, such as `play_n_episodes`.

    Args:
      predict: as for `Actor.play`; the values are not needed.
      rng: draws the actions.

    Returns:
      a predictor that returns 1 for an action drawn from the policy and 0 for the others.
    """

    def predict_drawn(states: np.ndarray) -> List[np.ndarray]:
        policy = np.asarray(predict(states)[0])
        return [np.eye(policy.shape[1])[sample_actions(policy, rng)]]

    return predict_drawn


class PolicyEvaluator(Evaluator):
    """An `Evaluator` of a predictor that returns probabilities of actions, not their values.

    In many games the most probable action alone leads to a standstill.
    """

    def _setup_graph(self) -> None:
        super()._setup_graph()
        self._predictor = sampling(self._predictor, self._rng)
