"""R9: how long `import tensorpack` takes beyond the bare interpreter, TensorFlow not loaded.

    python benchmarks/r9_import.py [--pairs 11]

Starts the interpreter alone and with the import, in turns.
"""

import argparse
import statistics
import subprocess
import sys
import time

from _programs import ROOT
from _report import Measured, report, say

IMPORT = "import tensorpack"
LOADED = f"{IMPORT}, sys; sys.exit('tensorflow' in sys.modules)"


def seconds_of(code):
    """How long an interpreter takes for a program, in seconds."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, cwd=str(ROOT))
    return time.perf_counter() - start


def main():
    """Measures and prints a row a pair, the median difference last."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=11)
    args = parser.parse_args()
    seconds_of(LOADED)  # fails if TensorFlow is loaded; writes the bytecode
    say("tensorflow is not in sys.modules after the import")
    differences = []
    for number in range(args.pairs):
        empty = seconds_of("")
        differences.append(1e3 * (seconds_of(IMPORT) - empty))
        say(f"pair {number}: interpreter {1e3 * empty:.1f} ms, import {differences[-1]:.1f} ms")
    label, median = "import tensorpack, beyond the bare interpreter", statistics.median(differences)
    report(Measured("R9", label, median, "ms", "<= 50"))


if __name__ == "__main__":
    main()
