"""Counts games, and keeps every one that ended: curves of scores are computed from this record."""

import os
from array import array
from collections import deque
from typing import Any, Deque, Dict, Iterable, List, NamedTuple, Sequence

import numpy as np

from tensorpack.utils import logger
from tensorpack.utils.atomic import write_atomic

from .player import PlayerStep


class Episode(NamedTuple):
    """A whole game that ended."""

    step: int  # agent steps of the run at its end, over all games and all attempts
    score: float
    length: int  # agent steps of the game


_TYPES = {"step": "q", "score": "d", "length": "q"}


class EpisodeCounter:
    """Base of what plays N games: counts transitions, and keeps the games that ended.

    Only `take_episodes` is thread-safe.

    Attributes:
      transitions: how many were played in the run so far, also before it was resumed.
    """

    def __init__(self, num_envs: int) -> None:
        self._ended: Deque[Episode] = deque()  # games that were not reported yet
        self._lengths = np.zeros(num_envs, np.int64)  # of the games under way
        self.transitions = 0

    def take_episodes(self) -> List[Episode]:
        """Returns the games that ended since the last call, in order."""
        return [self._ended.popleft() for _ in range(len(self._ended))]

    def waiting_episodes(self) -> List[Episode]:
        """Returns what `take_episodes` would; between two ticks."""
        return list(self._ended)

    def restore_episodes(self, episodes: Iterable[Sequence[Any]]) -> None:
        """Replaces the games that wait to be taken."""
        self._ended = deque(Episode(*episode) for episode in episodes)

    def _count(self, step: PlayerStep) -> None:
        """Counts a step of all games; one that began a new game is no transition."""
        self._lengths = np.where(step.reset, 0, self._lengths + 1)
        self.transitions += int(np.count_nonzero(~step.reset))
        for i in np.flatnonzero(step.terminated | step.truncated):
            score, length = float(step.episode_score[i]), int(self._lengths[i])
            self._ended.append(Episode(self.transitions, score, length))


class EpisodeLog:
    """All games that ended in a run, and their file `episodes.csv` in the log directory.

    The file has the columns `step,score,length`, see `Episode`, in the order in which the games
    ended. The games are part of the state of the run, and the file is replaced whole: in a resumed
    run each game is there once, and games after the state that was resumed are not.
    """

    FILENAME = "episodes.csv"

    def __init__(self) -> None:
        self._columns: Dict[str, Any] = {name: array(code) for name, code in _TYPES.items()}
        self._failed = False

    def __len__(self) -> int:
        """Returns how many games there are."""
        return len(self._columns["step"])

    def extend(self, episodes: Iterable[Episode]) -> None:
        """Adds games, oldest first."""
        for episode in episodes:
            for column, value in zip(self._columns.values(), episode):
                column.append(value)

    def write(self) -> None:
        """Writes the file, if there is a log directory; the first error of the disk is logged."""
        directory = logger.get_logger_dir()
        if directory is None:
            return
        path = os.path.join(directory, self.FILENAME)
        columns = zip(*self._columns.values())
        rows = (f"{step},{score!r},{length}" for step, score, length in columns)
        try:
            write_atomic(path, "\n".join([",".join(_TYPES), *rows, ""]).encode())
        except OSError as error:
            if not self._failed:
                logger.error(f"Cannot write {path}, the training continues: {error}")
            self._failed = True

    def state_dict(self) -> Dict[str, Any]:
        return {name: np.array(column) for name, column in self._columns.items()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        for name, code in _TYPES.items():
            self._columns[name] = array(code, state[name].tolist())
