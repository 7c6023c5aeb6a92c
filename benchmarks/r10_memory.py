"""R10: what the main job keeps in memory beyond its replay memory and a bare TensorFlow process.

    python benchmarks/r10_memory.py [--pairs 5] [--epochs 8] [--steps 500] [...]

Alternates `bare_update.py` with a short main job whose replay memory is full from the first step
on, and reads what is resident (VmRSS in /proc, so Linux only): of the bare process just before it
ends, of the job after each epoch. Prints megabytes, and how many more of them there are per 10,000
steps (least squares over the second half of the epochs: in the first thousand steps allocators
still take what they then keep); medians last. Of what is beyond, the input queue holds up to 50
batches, 113 MB. Other flags go to DQN.py.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from _report import Measured, report, say

from tensorpack.RL import ReplayMemory

HERE = Path(__file__).resolve().parent
DQN = HERE.parent / "examples" / "DeepQNetwork" / "DQN.py"
EPOCH = re.compile(r"Epoch \d+ \(global_step (\d+)\) finished")
FRAME, HISTORY = (84, 84), 4
MB = 1e6
LIMIT = 1800  # seconds, after which a program is taken to hang
HEAD = "          bare    run  replay  beyond  per 10,000 steps"


def start(*command):
    """A program whose output can be read line by line; killed after `LIMIT`."""
    child = subprocess.Popen(
        [sys.executable, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    limit = threading.Timer(LIMIT, child.kill)
    limit.daemon = True
    limit.start()
    return child


def resident(child):
    """Megabytes of a process; None if it has ended."""
    for line in Path(f"/proc/{child.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024 / MB
    return None


def bare(seconds):
    """Megabytes of the graph alone, at last."""
    last = float("nan")
    with start(HERE / "bare_update.py", "--seconds", seconds) as child:
        while child.poll() is None:
            last = resident(child) or last
            time.sleep(0.1)
        output = child.stdout.read()
    if child.returncode:
        raise RuntimeError(f"bare_update.py ended with {child.returncode}:\n{output}")
    return last


def whole(args, flags, measure=resident):
    """Steps and megabytes of the main job after each epoch; `measure` takes the process."""
    points, output = [], []
    with tempfile.TemporaryDirectory() as folder:
        job = [DQN, "--rom", args.rom, "--logdir", Path(folder) / "log", "--eval-every", 10**6]
        sizes = ["--memory-size", args.memory_size, "--init-memory-size", args.memory_size]
        length = ["--steps-per-epoch", args.steps, "--max-epoch", args.epochs]
        with start(*job, *sizes, *length, *flags) as child:
            for line in child.stdout:
                output.append(line)
                found = EPOCH.search(line)
                if found:
                    points.append((int(found.group(1)), measure(child)))
    if child.returncode:
        raise RuntimeError(f"DQN.py ended with {child.returncode}:\n{''.join(output)}")
    return points


def row(name, numbers):
    """A line of the table."""
    alone, run, replay, beyond, slope = numbers
    return f"{name:6} {alone:7.0f} {run:6.0f} {replay:7.0f} {beyond:7.0f} {slope:17.2f}"


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=8, help="at least 4")
    parser.add_argument("--steps", type=int, default=500, help="updates in an epoch")
    parser.add_argument("--memory-size", type=int, default=5000)
    parser.add_argument("--rom", default="breakout.bin")
    args, flags = parser.parse_known_args()
    replay = ReplayMemory.required_bytes(args.memory_size, FRAME, HISTORY) / MB
    rows = []
    say(HEAD)
    for number in range(args.pairs):
        alone, points = bare(seconds=10), whole(args, flags)
        steps, megabytes = np.array(points[len(points) // 2 :]).T
        slope = np.polyfit(steps, megabytes, 1)[0] * 10000
        rows.append((alone, megabytes[-1], replay, megabytes[-1] - replay - alone, slope))
        say(row(f"pair {number}", rows[-1]))
    alone, run, replay, beyond, slope = (statistics.median(column) for column in zip(*rows))
    say(row("median", [alone, run, replay, beyond, slope]))
    peer = f"run {run:.0f}, replay memory {replay:.0f}, bare process {alone:.0f} MB"
    report(
        Measured("R10", "memory of a run beyond its parts", beyond, "MB", "<= 150", peer),
        Measured("R10", "its growth in 10,000 steps", slope, "MB", "<= 1"),
    )


if __name__ == "__main__":
    main()
