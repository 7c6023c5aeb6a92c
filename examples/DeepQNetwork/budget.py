"""How many transitions may be played: the agreement between who trains and who plays."""

import threading

__all__ = ["TransitionBudget"]


class TransitionBudget:
    """Keeps playing in step with training: so many transitions for each batch, neither runs ahead.

    The trainer's side grants after each batch, and waits while the player is `max_grants` grants
    behind; the player's side waits until something is granted, plays, and says how much that was.
    It may be more than was granted, where many environments move at once: then later grants pay
    for it. Closing wakes both. Thread-safe.

    Args:
      grant: transitions that are granted for one batch.
      max_grants: how many grants may be open.

    Raises:
      ValueError: an argument is less than 1.
    """

    def __init__(self, grant: int, max_grants: int = 5) -> None:
        if grant < 1 or max_grants < 1:
            raise ValueError(
                f"A budget grants 1 or more transitions, 1 or more times, got grant={grant}, "
                f"max_grants={max_grants}."
            )
        self._grant = grant
        self._most_open = grant * max_grants
        self._open = 0
        self._closed = False
        self._change = threading.Condition()

    @property
    def open(self) -> int:
        """Transitions that are granted and not played; below 0 is played in advance."""
        return self._open

    @open.setter
    def open(self, count: int) -> None:
        with self._change:
            self._open = count
            self._change.notify_all()

    def grant(self) -> bool:
        """Grants the transitions of one batch, as soon as there is room for them.

        Returns:
          False if the budget was closed.
        """
        with self._change:
            self._change.wait_for(
                lambda: self._closed or self._open + self._grant <= self._most_open
            )
            if self._closed:
                return False
            self._open += self._grant
            self._change.notify_all()
            return True

    def wait(self) -> bool:
        """Waits until there is something to play; returns False if the budget was closed."""
        with self._change:
            self._change.wait_for(lambda: self._closed or self._open > 0)
            return not self._closed

    def spend(self, count: int) -> None:
        """Says that `count` transitions have been played."""
        with self._change:
            self._open -= count
            self._change.notify_all()

    def close(self) -> None:
        """Ends all waiting, for ever."""
        with self._change:
            self._closed = True
            self._change.notify_all()
