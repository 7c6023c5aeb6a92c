"""R1: the whole DQN run against its update alone, in pairs, on one TensorFlow.

    python benchmarks/r1_dqn_run.py [--pairs 5] [--rom breakout.bin]

Alternates `bare_update.py` with a short main job (default flags but for the size of the memory and
the length of an epoch; the second epoch counts) and prints the ratio of each pair and the median.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
DQN = HERE.parent / "examples" / "DeepQNetwork" / "DQN.py"
EPOCH = re.compile(r"Epoch 2 .* finished, time:([0-9.]+) sec")
FILL = re.compile(r"(\d+)/\1\[[^\]]*?,\s*([0-9.]+)it/s\]")


def output_of(*command):
    """What a program prints; fails if it does."""
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def bare(seconds):
    """Updates per second of the graph alone."""
    text = output_of(HERE / "bare_update.py", "--seconds", seconds)
    return float(re.search(r"updates/s: ([0-9.]+)", text).group(1))


def whole(steps, rom, flags):
    """Updates per second of the main job, and transitions per second while it fills its memory."""
    with tempfile.TemporaryDirectory() as folder:
        text = output_of(
            *[DQN, "--rom", rom, "--logdir", Path(folder) / "log", "--max-epoch", 2],
            *["--steps-per-epoch", steps, "--init-memory-size", 3000, "--memory-size", 20000],
            *flags,
        )
    fill = [float(rate) for size, rate in FILL.findall(text) if size == "3000"]
    return steps / float(EPOCH.search(text).group(1)), (fill or [float("nan")])[-1]


def main():
    """Measures and prints a row a pair, the median ratio last."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200, help="updates in the epoch that counts")
    parser.add_argument("--rom", default="breakout.bin")
    args, flags = parser.parse_known_args()
    ratios = []
    for number in range(args.pairs):
        alone = bare(seconds=10)
        run, fill = whole(args.steps, args.rom, flags)
        ratios.append(run / alone)
        sys.stdout.write(
            f"pair {number}: bare {alone:.2f} it/s, run {run:.2f} it/s, filling {fill:.0f}/s, "
            f"ratio {ratios[-1]:.3f}\n"
        )
        sys.stdout.flush()
    sys.stdout.write(f"median ratio {statistics.median(ratios):.3f}\n")


if __name__ == "__main__":
    main()
