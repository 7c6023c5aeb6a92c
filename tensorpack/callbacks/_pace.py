"""Says how many steps there are from one look to the next, given how fast the last ones were."""

__all__ = ["Pace"]

_RECENT_SECONDS = 1.0  # over which the speed is taken; what is older counts less and less
_GOLDEN = 0.6180339887  # distances that follow it keep step with no period of the training


class Pace:
    """Spreads looks over a training whose speed may change.

    Steps and seconds are given as totals that grow, until `restart`.

    Args:
      seconds: between two looks, on average.
    """

    def __init__(self, seconds: float) -> None:
        self._between = seconds
        self._irregular = 0.5
        self._steps = self._seconds = 0.0  # of late
        self._steps_then, self._seconds_then = 0, 0.0

    def restart(self) -> None:
        """Says that the totals begin at zero again. The speed is still that of before."""
        self._steps_then, self._seconds_then = 0, 0.0

    def distance(self, steps: int, seconds: float, late: bool = False) -> int:
        """Returns how many steps there are to the next look: irregular, or a wait in every second
        step would be seen always or never.

        Args:
          steps: the total of now.
          seconds: the total of now.
          late: whether the last distance took far too long, so that only the speed since it counts.
        """
        more, took = steps - self._steps_then, seconds - self._seconds_then
        kept = 0.0 if late else _RECENT_SECONDS / (_RECENT_SECONDS + took)
        self._steps = kept * self._steps + more
        self._seconds = kept * self._seconds + took
        self._steps_then, self._seconds_then = steps, seconds
        if self._steps <= 0 or self._seconds <= 0:
            return 1
        self._irregular = (self._irregular + _GOLDEN) % 1.0
        return 1 + int(2 * self._irregular * self._between * self._steps / self._seconds)
