"""Wrappers around an `RLEnvironment` of 2017: limits, restarts, and a way out of a standstill.

Those around a `Player` of N environments are in `tensorpack.RL.wrappers`; `MapPlayerState` serves
both.
"""

from typing import Any, Tuple

from tensorpack.utils.checks import as_count

from .envbase import ProxyPlayer, RLEnvironment
from .wrappers import MapPlayerState

__all__ = ["AutoRestartPlayer", "LimitLengthPlayer", "MapPlayerState", "PreventStuckPlayer"]


class PreventStuckPlayer(ProxyPlayer):
    """Takes another action where an agent asks for the same one again and again.

    The request that completes `nr_repeat` equal ones in a row, and all further ones of the same
    action, are replaced, until the agent asks for another action or a new game begins.

    Args:
      player: the environment to wrap.
      nr_repeat: equal requests in a row that count as stuck, at least 1.
      action: taken instead.
    """

    def __init__(self, player: RLEnvironment, nr_repeat: int, action: Any):
        super().__init__(player)
        self._nr_repeat = as_count(self, "nr_repeat", nr_repeat)
        self._way_out = action
        self._last, self._repeats = None, 0

    def action(self, act: Any) -> Tuple[float, bool]:
        """Takes the action, or the other one instead."""
        self._repeats = self._repeats + 1 if self._repeats and act == self._last else 1
        self._last = act
        reward, over = super().action(self._way_out if self._repeats >= self._nr_repeat else act)
        if over:
            self._repeats = 0
        return reward, over

    def restart_episode(self) -> None:
        """Begins a new game, and the count of requests again."""
        super().restart_episode()
        self._repeats = 0


class LimitLengthPlayer(ProxyPlayer):
    """Ends every game that has taken so many actions, and begins the next one.

    Args:
      player: the environment to wrap.
      limit: actions in a game, at least 1.
    """

    def __init__(self, player: RLEnvironment, limit: int):
        super().__init__(player)
        self.limit = as_count(self, "limit", limit)
        self._length = 0

    def action(self, act: Any) -> Tuple[float, bool]:
        """Takes the action; where it is the last one allowed, the game is over."""
        reward, over = super().action(act)
        self._length += 1
        if over:
            self._length = 0
        elif self._length >= self.limit:
            self.finish_episode()
            self.restart_episode()
            over = True
        return reward, over

    def restart_episode(self) -> None:
        """Begins a new game, and the count of actions again."""
        super().restart_episode()
        self._length = 0


class AutoRestartPlayer(ProxyPlayer):
    """Finishes a game that is over and begins the next one, for environments that do not.

    Args:
      player: the environment to wrap, such as `GymEnv(name, auto_restart=False)`.
    """

    def action(self, act: Any) -> Tuple[float, bool]:
        """Takes the action; where the game is over, the next one has begun."""
        reward, over = super().action(act)
        if over:
            self.finish_episode()
            self.restart_episode()
        return reward, over
