"""The environments of tensorpack of 2017, and wrappers around them: one game, one action at a time.

For scripts written against that API. New code uses `Player`, which steps N environments together,
and the wrappers in `tensorpack.RL.wrappers`.
"""

from collections import defaultdict
from typing import Any, Callable, DefaultDict, List, Sequence, Tuple, Union

from tensorpack.utils.checks import as_count
from tensorpack.utils.rng import get_rng

__all__ = [
    "AutoRestartPlayer",
    "DiscreteActionSpace",
    "LimitLengthPlayer",
    "PreventStuckPlayer",
    "ProxyPlayer",
    "RLEnvironment",
]


class DiscreteActionSpace:
    """The actions 0 to num - 1; `sample` draws one by `rng`."""

    def __init__(self, num: int):
        self.num = as_count(self, "num", num)
        self.rng = get_rng(self)

    def sample(self) -> int:
        """Returns a random action."""
        return int(self.rng.randint(self.num))

    def num_actions(self) -> int:
        """Returns the number of actions."""
        return self.num


class RLEnvironment:
    """One environment. Use it like this::

        state = env.current_state()
        reward, over = env.action(choose(state))    # where over, a new game has begun already
        env.stats["score"]                          # one value for each finished game

    Subclasses override `current_state`, `action` (which calls `finish_episode` and
    `restart_episode` where a game ends), `restart_episode`, `finish_episode` and
    `get_action_space`, and call this constructor.

    Attributes:
      stats: lists of values, one for each finished game, by the name of the statistic.
    """

    def __init__(self) -> None:
        self.reset_stat()

    def current_state(self) -> Any:
        """Returns the observation to act on."""
        raise NotImplementedError

    def action(self, act: Any) -> Tuple[float, bool]:
        """Takes an action; returns the reward, and whether the game is over."""
        raise NotImplementedError

    def restart_episode(self) -> None:
        """Begins a new game, whether the present one is over or not."""
        raise NotImplementedError

    def finish_episode(self) -> None:
        """Adds the statistics of the present game to `stats`. By default there are none."""

    def get_action_space(self) -> Any:
        """Returns the possible actions, such as a `DiscreteActionSpace`."""
        raise NotImplementedError

    def reset_stat(self) -> None:
        """Forgets all statistics."""
        self.stats: DefaultDict[str, List[Any]] = defaultdict(list)

    def play_one_episode(
        self, func: Callable[[Any], Any], stat: Union[str, Sequence[str]] = "score"
    ) -> List[Any]:
        """Plays until a game is over, then forgets all statistics.

        Args:
          func: takes a state and returns an action.
          stat: name of a statistic, whose values since the last `reset_stat` are returned; or
            several names, for a list of such lists.
        """
        over = False
        while not over:
            _, over = self.action(func(self.current_state()))
        stats = self.stats
        values = stats[stat] if isinstance(stat, str) else [stats[name] for name in stat]
        self.reset_stat()
        return values

    def close(self) -> None:
        """Releases what the environment holds; by default nothing."""


class ProxyPlayer(RLEnvironment):
    """Passes every call on to another environment, and shares its `stats`; the base of wrappers.

    `tensorpack.RL.ProxyPlayer`, a subclass, takes a `Player` as well.
    """

    def __init__(self, player: RLEnvironment):
        self.player: Any = player

    @property
    def stats(self) -> DefaultDict[str, List[Any]]:  # type: ignore[override]
        return self.player.stats

    def current_state(self) -> Any:
        return self.player.current_state()

    def action(self, act: Any) -> Tuple[float, bool]:
        return self.player.action(act)

    def restart_episode(self) -> None:
        self.player.restart_episode()

    def finish_episode(self) -> None:
        self.player.finish_episode()

    def get_action_space(self) -> Any:
        return self.player.get_action_space()

    def reset_stat(self) -> None:
        self.player.reset_stat()

    def close(self) -> None:
        self.player.close()


class PreventStuckPlayer(ProxyPlayer):
    """Takes another action where an agent asks for the same one again and again.

    The request that completes `nr_repeat` equal ones in a row, and all further ones of the same
    action, are replaced by `action`, until the agent asks for another one or a new game begins.
    """

    def __init__(self, player: RLEnvironment, nr_repeat: int, action: Any):
        super().__init__(player)
        self._nr_repeat = as_count(self, "nr_repeat", nr_repeat)
        self._replacement = action
        self._last, self._repeats = None, 0

    def action(self, act: Any) -> Tuple[float, bool]:
        self._repeats = self._repeats + 1 if self._repeats and act == self._last else 1
        self._last = act
        stuck = self._repeats >= self._nr_repeat
        reward, over = super().action(self._replacement if stuck else act)
        if over:
            self._repeats = 0
        return reward, over

    def restart_episode(self) -> None:
        super().restart_episode()
        self._repeats = 0


class AutoRestartPlayer(ProxyPlayer):
    """Finishes a game that is over and begins the next one, for environments that do not, such as
    `GymEnv(name, auto_restart=False)`.
    """

    def action(self, act: Any) -> Tuple[float, bool]:
        reward, over = super().action(act)
        if over:
            self.finish_episode()
            self.restart_episode()
        return reward, over


class LimitLengthPlayer(ProxyPlayer):
    """Ends every game that has taken `limit` actions, and begins the next one."""

    def __init__(self, player: RLEnvironment, limit: int):
        super().__init__(player)
        self.limit = as_count(self, "limit", limit)
        self._length = 0

    def action(self, act: Any) -> Tuple[float, bool]:
        reward, over = super().action(act)
        self._length = 0 if over else self._length + 1
        if self._length >= self.limit:
            self.finish_episode()
            self.restart_episode()
            over = True
        return reward, over

    def restart_episode(self) -> None:
        super().restart_episode()
        self._length = 0
