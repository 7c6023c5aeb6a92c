"""The memory of a large list that four processes read, over many passes.

    python benchmarks/dataflow_memory.py [--gigabytes 2] [--passes 50] [--processes 4] [--plain]

The list has a dict for each element: a name, boxes, and a picture of 100 kB. It is a `SharedList`,
or with `--plain` a Python list. Prints after each pass how much memory this process and its workers
take together (the proportional set size, in which shared pages count once), and at last how much
that grows per pass, by least squares over the second half. Linux only.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np
from _report import say

from tensorpack.dataflow import DataFromList, MultiProcessRunner, SharedList

PICTURE = (180, 185, 3)  # uint8, 100 kB
GB = 1e9


def elements(count):
    """What the list is made of."""
    rng = np.random.RandomState(0)
    for index in range(count):
        yield {
            "name": f"picture number {index}",
            "boxes": [[float(each) for each in rng.rand(4)] for _ in range(10)],
            "picture": np.full(PICTURE, index % 256, np.uint8),
        }


def family(pid):
    """A process and all that it has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid] + [each for child in children for each in family(int(child))]


def proportional_bytes():
    """Of this process and of all that it has started, together."""
    total = 0
    for pid in family(os.getpid()):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=2.0)
    parser.add_argument("--passes", type=int, default=50)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--plain", action="store_true", help="use a Python list")
    args = parser.parse_args()
    count = int(args.gigabytes * GB / np.prod(PICTURE))
    made = elements(count)
    lst = list(made) if args.plain else SharedList(made)
    flow = MultiProcessRunner(DataFromList(lst), 64, args.processes)
    flow.reset_state()
    points = []
    try:
        for number in range(1, args.passes + 1):
            start = time.monotonic()
            for datapoint in flow:
                if len(datapoint["boxes"]) != 10:
                    raise RuntimeError("The data has changed on its way.")
            taken = time.monotonic() - start
            points.append(proportional_bytes() / GB)
            say(f"pass {number}: {points[-1]:.3f} GB ({count / taken:.0f}/s)")
    finally:
        flow.close()
    half = points[len(points) // 2 :]
    slope = np.polyfit(range(len(half)), half, 1)[0] if len(half) > 1 else float("nan")
    growth = 100 * (points[-1] / points[0] - 1)
    say(
        f"{'list' if args.plain else 'SharedList'} of {count}: {points[0]:.3f} GB after the first "
        f"pass, {points[-1]:.3f} GB after the last ({growth:+.1f} %), "
        f"{1000 * slope:+.3f} MB a pass in the second half"
    )


if __name__ == "__main__":
    main()
