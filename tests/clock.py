"""A clock for code that takes its clock as an argument."""

__all__ = ["FakeClock"]


class FakeClock:
    """A clock that moves only when it is told to.

    Args:
      now: what it shows at first, in seconds.
    """

    def __init__(self, now=0.0):
        self.now = now

    def __call__(self):
        return self.now

    def advance(self, seconds):
        """Moves the clock on."""
        self.now += seconds
