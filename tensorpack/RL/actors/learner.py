"""A learner's side: the games of all actors as one player, and what fills a memory with them."""

from typing import Any, Dict

import numpy as np

from ..episodes import Episode
from ..player import Player
from ..replay import ReplayMemory
from ..simulator import Simulator
from .chunks import store_chunk
from .group import ActorGroup

_TICK_SECONDS = 0.2  # for a chunk to come


class RemotePlayer(Player):
    """The games of all actors: it says what they are, and cannot be stepped. It owns its group.

    Args:
      like: a player as each actor has; only its attributes are read.
      group: the actors.
    """

    def __init__(self, like: Player, group: ActorGroup) -> None:
        self.group = group
        self.games = like.num_envs  # of each actor
        self.num_envs = like.num_envs * group.size
        self.num_actions = like.num_actions
        self.frame_shape = like.frame_shape
        self.frame_dtype = like.frame_dtype
        self._identity = {**like.identity, "actors": group.size}

    @property
    def identity(self) -> Dict[str, Any]:
        """What is played, and by how many actors."""
        return self._identity

    def _close(self) -> None:
        self.group.close()


class RemoteSimulator(Simulator):
    """Fills a replay memory with what actors play; a tick is a chunk of one of them.

    Args:
      player: describes the games.
      memory: has a lane for each game of each actor.
    """

    def __init__(self, player: RemotePlayer, memory: ReplayMemory) -> None:
        no_agent: Any = None  # the actors have theirs
        super().__init__(player, memory, agent=no_agent)
        self._group = player.group
        self._lanes = np.arange(player.num_envs).reshape(player.group.size, player.games)
        self._playing = False

    @property
    def playing(self) -> bool:
        """True after `begin`."""
        return self._playing

    def begin(self) -> None:
        """Cuts off the games that the memory has; actors always begin new ones."""
        self._memory.end_episodes()
        self._playing = True

    def tick(self, epsilon: float) -> int:
        """Stores a chunk of any actor, if one comes soon.

        Args:
          epsilon: probability of a random action, from some chunks later on.

        Returns:
          how many transitions were stored.

        Raises:
          ValueError: what came is not a chunk.
        """
        self._group.set_epsilon(epsilon)
        chunk = self._group.take(_TICK_SECONDS)
        if chunk is None:
            return 0
        lanes = self._lanes[chunk.actor]
        if not chunk.follows:
            self._memory.end_episodes(lanes)
        stored = store_chunk(self._memory, chunk.rows, lanes)
        self.transitions += stored
        games = (Episode(self.transitions, *each) for each in chunk.games)
        self._ended.extend(games)
        return stored

    def state_dict(self) -> Dict[str, Any]:
        """Returns the number of transitions alone: the games are elsewhere."""
        return {"transitions": self.transitions}

    def load_state_dict(self, state: Dict[str, Any]) -> str:
        """Returns why the games cannot be restored."""
        self.transitions = state.get("transitions", 0)
        return "Actors do not save games."
