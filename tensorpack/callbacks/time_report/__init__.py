"""Reports where the time of a training goes: measures, diagnoses, says what would help.

`report` is the callback. It collects what `measure` (clocks, waiting for data, busy cores) and
`callback_sampler` (the slowest callback) find, and `diagnosis` puts it into words.
"""

from .report import TimeReport

__all__ = ["TimeReport"]
