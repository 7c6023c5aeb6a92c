"""Keeps every game that ended in training: the record that curves of scores are computed from."""

import os
from array import array
from typing import Any, Dict, Iterable, NamedTuple

import numpy as np

from tensorpack.utils import logger
from tensorpack.utils.atomic import write_atomic


class Episode(NamedTuple):
    """A whole game that ended."""

    step: int  # agent steps of the run at its end, over all games and all attempts
    score: float
    length: int  # agent steps of the game


_TYPES = {"step": "q", "score": "d", "length": "q"}


class EpisodeLog:
    """All games that ended in a run, and their file `episodes.csv` in the log directory.

    The file has the columns `step,score,length`, see `Episode`, in the order in which the games
    ended. The games are part of the state of the run, and the file is replaced whole: in a resumed
    run each game is there once, and games after the state that was resumed are not.
    """

    FILENAME = "episodes.csv"

    def __init__(self) -> None:
        self._columns: Dict[str, Any] = {name: array(code) for name, code in _TYPES.items()}

    def __len__(self) -> int:
        """Returns how many games there are."""
        return len(self._columns["step"])

    def extend(self, episodes: Iterable[Episode]) -> None:
        """Adds games, oldest first."""
        for episode in episodes:
            for column, value in zip(self._columns.values(), episode):
                column.append(value)

    def write(self) -> None:
        """Writes the file, if there is a log directory; an error of the disk is only logged."""
        directory = logger.get_logger_dir()
        if directory is None:
            return
        path = os.path.join(directory, self.FILENAME)
        rows = (f"{step},{score!r},{length}" for step, score, length in self._rows())
        try:
            write_atomic(path, "\n".join([",".join(_TYPES), *rows, ""]).encode())
        except OSError as error:
            logger.error(f"Cannot write {path}, the next epoch tries again: {error}")

    def _rows(self) -> Iterable[Any]:
        return zip(*self._columns.values())

    def state_dict(self) -> Dict[str, Any]:
        """Returns the columns as arrays."""
        return {name: np.array(column) for name, column in self._columns.items()}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restores what `state_dict` returned."""
        for name, code in _TYPES.items():
            self._columns[name] = array(code, state[name].tolist())
