"""Sample Factory on Breakout, which R17 is held against. Prints steps of the games per second.

    .venv-peer-sample-factory/bin/python benchmarks/peers/sample_factory.py --roms FOLDER

Its own command for Atari, on the CPU: 16 games in a process for each core, rollouts of five steps,
one pass over each batch of 80, and no recurrence. It plays and learns at once.
"""

import os
import re
import statistics
import subprocess
import sys
import tempfile

from _clock import parse_args, print_rate

GAMES = 16
RATE = re.compile(r"Fps is \(10 sec: ([0-9.]+)")
ROLLOUTS = {"rollout": 5, "recurrence": 1, "batch_size": 80, "num_epochs": 1, "use_rnn": False}


def main():
    """Measures and prints."""
    args = parse_args(__doc__, roms=".", seconds=60)
    cores = len(os.sched_getaffinity(0))
    importer = os.path.join(os.path.dirname(sys.executable), "ale-import-roms")
    subprocess.run([importer, args.roms], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        flags = {
            **ROLLOUTS,
            "env": "atari_breakout",
            "train_dir": folder,
            "device": "cpu",
            "num_workers": cores,
            "num_envs_per_worker": GAMES // cores,
            "train_for_seconds": args.seconds,
            "summaries_use_frameskip": False,
        }
        flags = [f"--{name}={value}" for name, value in flags.items()]
        command = [sys.executable, "-m", "sf_examples.atari.train_atari", *flags]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rates = [float(each) for each in RATE.findall(text)]
    print_rate("steps", statistics.median(rates[len(rates) // 2 :]))


if __name__ == "__main__":
    main()
