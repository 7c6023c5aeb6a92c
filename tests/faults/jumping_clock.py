"""Runs a case while the clock on the wall goes mad: a day forward or back at each look at it.

`python -m tests.faults.jumping_clock CASE LOGDIR`; all that is imported gets this clock.
"""

import itertools
import sys
import time

DAY = 86400.0


def jump():
    """Has `time.time` be right, a day late and a day early in turn."""
    true_time, offsets = time.time, itertools.cycle([0.0, DAY, -DAY])
    time.time = lambda: true_time() + next(offsets)


if __name__ == "__main__":
    jump()
    from tests.faults import cases_process  # noqa: F401
    from tests.faults.training import main

    main(*sys.argv[1:])
