"""The data source of the training, and the callback that keeps its games: a rollout for a step."""

from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np
from acting import Actor
from returns import nstep_targets

from tensorpack.callbacks import Callback
from tensorpack.contrib.game_flags import changed_rules
from tensorpack.dataflow import DataFlow
from tensorpack.RL import EpisodeLog, Player
from tensorpack.utils import get_rng, logger
from tensorpack.utils.checks import as_count
from tensorpack.utils.rng import is_seeded

_MANY_PLAYERS = 64  # more of them do not make playing much faster


class Rollouts(DataFlow, Callback):
    """Plays N games for T ticks, yields what was played, waits for the update, and so on.

    Give one object to a `TrainConfig` both as `dataflow` and among the `callbacks`, and train with
    a `SimpleTrainer`: the step of the training that asks for a datapoint plays it first. So the
    policy that is updated is the one that has played.

    A datapoint is `[state, action, target]`: uint8 `[B, *frame_shape, history]`, int64 `[B]` and
    float32 `[B]`, with B at most `T * N`: ticks in which a new game began are left out, and actions
    that the player took instead of the policy's. The target is that of `nstep_targets`, with
    rewards clipped to [-1, 1].

    Logs `rollout/mean_score` and `rollout/max_score` of the games that ended in an epoch, if there
    are any, and writes all games of the run to `episodes.csv`.

    A resumed run restores the games, scores and random streams. If the games are lost (not every
    player can save them), new ones begin, with a warning, or an error if the run must be resumed
    exactly.

    Args:
      predictor_io_names: names of the inputs, `[state]`, and of the outputs, `[policy, value]`, of
        the predictor that acts.
      player: plays the games; closed after the training.
      length: T, ticks between two updates.
      history: frames that make one state.
      discount: in [0, 1], per action.
      life_loss_ends: see `Actor`.
      rules: further settings that define the learning problem. They are saved, and compared when
        the run is resumed, see `changed_rules`.

    Raises:
      ValueError: a size is not positive, or the discount is out of range.
    """

    def __init__(
        self,
        predictor_io_names: Tuple[Sequence[str], Sequence[str]],
        player: Player,
        length: int = 5,
        history: int = 4,
        discount: float = 0.99,
        life_loss_ends: bool = True,
        rules: Optional[Mapping[str, Any]] = None,
    ) -> None:
        length = as_count("Rollouts", "length", length)
        history = as_count("Rollouts", "history", history)
        if not 0 <= discount <= 1:
            raise ValueError(f"discount must be in [0, 1], got {discount}.")
        self._predictor_io_names = predictor_io_names
        self._player = player
        self._length = length
        self._discount = discount
        self._rules = {
            **(rules or {}),
            "num_players": player.num_envs,
            "rollout": length,
            "history": history,
            "discount": discount,
            "life_loss_ends": life_loss_ends,
        }
        self._actor = Actor(player, history, life_loss_ends, get_rng(self))
        self._episodes = EpisodeLog()
        self._predict: Any = None
        logger.info(f"Number of Legal actions: {player.num_actions}")

    @property
    def seeded(self) -> bool:
        """True if the next run of the program will draw the same random numbers."""
        return is_seeded()

    @property
    def env_steps(self) -> int:
        """Transitions that were played in the run so far, over all games."""
        return self._actor.transitions

    @property
    def num_episodes(self) -> int:
        """Games that ended in the run so far, of those that were reported."""
        return len(self._episodes)

    def bottleneck_hint(self, limit: str) -> Optional[str]:
        """Returns advice for what limits the speed of the training, see `TimeReport`."""
        if limit != "data" or self._player.num_envs >= _MANY_PLAYERS:
            return None
        return f"playing is the limit; try --num-players {2 * self._player.num_envs}"

    def __iter__(self) -> Iterator[List[np.ndarray]]:
        while True:
            datapoint = self._play()
            if len(datapoint[1]):  # not if all games have just begun
                yield datapoint

    def _play(self) -> List[np.ndarray]:
        rollout = self._actor.play(self._predict, self._length)
        targets = nstep_targets(
            np.clip(rollout.rewards, -1, 1),
            rollout.over,
            rollout.truncated,
            rollout.values,
            self._discount,
        )
        columns = [rollout.states, rollout.actions, targets]
        flat = [each.reshape(-1, *each.shape[2:]) for each in columns]
        chosen = rollout.chosen.reshape(-1)
        return flat if chosen.all() else [column[chosen] for column in flat]

    def _setup_graph(self) -> None:
        self._predict = self.trainer.get_predictor(*self._predictor_io_names)

    def _before_train(self) -> None:
        self._episodes.write()
        if not self._actor.playing:
            self._actor.begin()

    def _trigger(self) -> None:
        episodes = self._actor.take_episodes()
        self._episodes.extend(episodes)
        self._episodes.write()
        if episodes:
            scores = [each.score for each in episodes]
            monitors = self.trainer.monitors
            monitors.put_scalar("rollout/mean_score", float(np.mean(scores)))
            monitors.put_scalar("rollout/max_score", float(np.max(scores)))

    def _after_train(self) -> None:
        self._player.close()

    def state_dict(self) -> Dict[str, Any]:
        """Returns all that the next datapoints depend on, but for the weights."""
        return {
            "games": self._player.identity,
            "rules": dict(self._rules),
            "actor": self._actor.state_dict(),
            "episodes": self._episodes.state_dict(),
            "waiting": [list(each) for each in self._actor.waiting_episodes()],
        }

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores what `state_dict` returned; called before the training begins.

        Raises:
          ValueError: the state is of other games.
          RuntimeError: the games are lost, or a rule has changed, and the run must be resumed
            exactly.
        """
        theirs, ours = state["games"], self._player.identity
        if theirs != ours:
            raise ValueError(
                f"The state is of games with {theirs}, these are games with {ours}. Resume with "
                "the same games, or start a new run with the weights (--load)."
            )
        changed = "; ".join(changed_rules(state["rules"], self._rules).values())
        if changed:
            self._accept_loss(f"The run continues with other rules: {changed}.")
        lost = self._actor.load_state_dict(state["actor"])
        if lost:
            self._accept_loss(f"The games cannot be restored: new ones begin. {lost}")
        self._episodes.load_state_dict(state["episodes"])
        self._actor.restore_episodes(state["waiting"])

    def _accept_loss(self, what: str) -> None:
        if self.trainer.resume_strictly:
            raise RuntimeError(f"{what} If that is acceptable, use --resume auto.")
        logger.warning(what)
