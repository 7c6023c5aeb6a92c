"""The scores of finished games, on their way from who plays to who reports."""

import threading
from typing import Iterable, List

__all__ = ["Scores"]


class Scores:
    """Collects scores; every score is taken exactly once. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._scores: List[float] = []

    def add(self, scores: Iterable[float]) -> None:
        """Adds the scores of games that have ended."""
        with self._lock:
            self._scores.extend(scores)

    def waiting(self) -> List[float]:
        """Returns the scores since the last time that they were taken, and keeps them."""
        with self._lock:
            return list(self._scores)

    def take(self) -> List[float]:
        """Returns the scores since the last time, in order, and forgets them."""
        with self._lock:
            taken, self._scores = self._scores, []
        return taken
