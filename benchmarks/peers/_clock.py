"""The command line, the clock and the last line of the programs of the peers; Python 3.7."""

import argparse
import sys
import time


def parse_args(description, **defaults):
    """The command line of a peer: a flag for each name, of the kind of its default."""
    parser = argparse.ArgumentParser(description=description)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    return parser.parse_args()


def per_second(stream, seconds, each=1, check=None, warm_up=1.0):
    """How many datapoints per second come out of an endless iterator.

    Args:
      stream: of anything; none of its elements is kept.
      seconds: how long, after the time to warm up.
      each: how many datapoints one element stands for.
      check: called with each element; raises where that is wrong.
      warm_up: seconds that are not counted.
    """
    start, count, begin = time.perf_counter(), 0, None
    for element in stream:
        if check is not None:
            check(element)
        now = time.perf_counter()
        if begin is None:
            if now - start >= warm_up:
                begin = now
            continue
        count += each
        if now - begin >= seconds:
            return count / (now - begin)
    raise RuntimeError("The data ended early.")


def print_rate(unit, rate):
    """Ends the output with the line that is read: "datapoints/s: 7.5"."""
    sys.stdout.write(f"{unit}/s: {rate:.2f}\n")
    sys.stdout.flush()
