"""Small flows for an input source, and a run of it without a trainer."""

from tensorpack.dataflow import DataFlow
from tensorpack.testing.input_source import Trainer, hooked, running

__all__ = ["FlowOf", "Trainer", "hooked", "numbers", "running"]


class FlowOf(DataFlow):
    """A dataflow whose passes a function makes.

    Args:
      one_pass: called with the number of the pass, from 0; returns an iterator.
      length: of a pass.
    """

    def __init__(self, one_pass, length=None):
        self._one_pass = one_pass
        self._length = length
        self.passes = 0
        self.resets = 0

    def reset_state(self):
        self.resets += 1

    def __iter__(self):
        self.passes += 1
        return iter(self._one_pass(self.passes - 1))

    def __len__(self):
        return super().__len__() if self._length is None else self._length


def numbers(length):
    """A flow of the numbers below a length."""
    return FlowOf(lambda number: [[i] for i in range(length)], length)
