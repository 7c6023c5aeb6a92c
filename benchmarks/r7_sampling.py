"""R7: sampling a batch from the replay memory against one bare numpy gather and a Python loop.

    python benchmarks/r7_sampling.py [--frames 100000 1000000] [--rounds 7] [--calls 60] [--writing]

A batch is 64 x (84, 84, 5), uint8; for transitions of three steps 64 x (84, 84, 8). Prioritised,
the priorities of a batch are set after it. "gather" is one `take` of as many random runs of frames
from a bare array; "loop" slices them one by one and copies them together. The three take turns; the
table has the medians of the rounds in milliseconds, and the median of the ratios of the pairs. A
million frames take 7 GB; what does not fit is left out, and said. With `--writing` a transition is
appended before every batch.
"""

import argparse
import statistics
import time

import numpy as np
from _report import Measured, report, say

from tensorpack.RL import PrioritizedReplay, ReplayMemory
from tensorpack.utils.memory import available_bytes

FRAME, HISTORY, BATCH = (84, 84), 4, 64
SPARE = 1 << 30  # bytes that are left to everything else
HEAD = "  frames        kind   loop  gather   ours  loop/ours  ours/gather"
KINDS = ["uniform", "3 steps", "prioritised"]
TARGETS = {  # ms
    (100000, "uniform"): "<= 0.25",
    (1000000, "uniform"): "<= 0.4",
    (1000000, "prioritised"): "<= 1",
}


def filled(frames, make_memory):
    """A full memory of one lane, with an end of an episode now and then."""
    memory = make_memory(frames, FRAME, HISTORY)
    rng = np.random.RandomState(0)
    kinds = rng.randint(256, size=(50, 1, *FRAME)).astype(np.uint8)
    ends = rng.rand(frames) < 0.005
    none, no = np.zeros(1), np.zeros(1, bool)
    for number in range(frames):
        frame = kinds[number % len(kinds)]
        memory.append(frame, none.astype(int), none, ends[number : number + 1], no)
    return memory


def make_ours(memory, kind, writing):
    """Samples as the example does."""
    rng = np.random.RandomState(1)
    frame, none, no = np.ones((1, *FRAME), np.uint8), np.zeros(1, int), np.zeros(1, bool)
    steps = 3 if kind == "3 steps" else 1

    def sample():
        if writing:
            memory.append(frame, none, none, no, no)
        if kind != "prioritised":
            return memory.sample(BATCH, rng, steps)
        drawn = memory.sample_weighted(BATCH, rng, steps)
        memory.update_priorities(drawn.slot, rng.random_sample(BATCH))
        return drawn

    return sample


def make_gather(frames, length):
    """One `take` of whole frames, from the same memory."""
    rng, around = np.random.RandomState(2), np.arange(length)

    def gather():
        rows = rng.randint(len(frames) - length, size=BATCH)[:, None] + around
        batch = np.empty((rows.size, frames.shape[1]), frames.dtype)
        return np.take(frames, rows.reshape(-1), axis=0, out=batch, mode="clip")

    return gather


def make_loop(frames, length):
    """A slice for each transition, a zero-padded copy where an episode begins, one big copy."""
    rng = np.random.RandomState(3)

    def loop():
        stacks = []
        for row in rng.randint(len(frames) - length, size=BATCH):
            stack = frames[row : row + length]
            if rng.randint(100) < 2:
                stack = stack.copy()
                stack[: rng.randint(1, HISTORY)] = 0
            stacks.append(stack.reshape((-1, *FRAME)).transpose(1, 2, 0))
        return np.asarray(stacks)

    return loop


def milliseconds(function, calls):
    """Of one call, on the average."""
    start = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - start) / calls * 1000


def measure(memory, frames, kind, args):
    """Writes the row of the table; returns the figure."""
    bare = memory._frames  # so that all read the very same pages
    length = 2 * HISTORY if kind == "3 steps" else HISTORY + 1
    functions = [
        make_loop(bare, length),
        make_gather(bare, length),
        make_ours(memory, kind, args.writing),
    ]
    for function in functions:
        function()
    rounds = [
        [milliseconds(function, args.calls) for function in functions] for _ in range(args.rounds)
    ]
    loop, gather, ours = (statistics.median(times) for times in zip(*rounds))
    gain = statistics.median(times[0] / times[2] for times in rounds)
    ratio = statistics.median(times[2] / times[1] for times in rounds)
    say(f"{frames:8} {kind:>11} {loop:6.2f} {gather:7.3f} {ours:6.3f} {gain:10.1f} {ratio:12.2f}")
    label = f"sampling 64 x (84, 84, {length}) of {frames:,} frames"
    label += "" if kind == "uniform" else f", {kind}"
    peer = f"bare gather {gather:.2f} ms, loop {loop:.2f} ms"
    return Measured("R7", label, ours, "ms", TARGETS.get((frames, kind), ""), peer)


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, nargs="+", default=[100000, 1000000])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=60)
    parser.add_argument("--writing", action="store_true")
    args = parser.parse_args()
    figures = []
    say(HEAD)
    for frames in args.frames:
        needed = ReplayMemory.required_bytes(frames, FRAME, HISTORY)
        available = available_bytes()
        if available is not None and needed + SPARE > available:
            say(f"{frames:8} takes {needed >> 20} MB, {available >> 20} are free")
            continue
        memory = filled(frames, ReplayMemory)
        figures += [measure(memory, frames, kind, args) for kind in KINDS[:2]]
        del memory  # two of a million frames may not fit
        memory = filled(frames, PrioritizedReplay)
        figures.append(measure(memory, frames, KINDS[2], args))
        del memory
    report(*figures)


if __name__ == "__main__":
    main()
