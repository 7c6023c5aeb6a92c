"""Sample Factory on Breakout, which R17 is held against. Prints steps of the games per second.

    .venv-peer-sample-factory/bin/python benchmarks/peers/sample_factory.py --roms FOLDER

Its own command for Atari, on the CPU: 16 games in a process for each core, rollouts of five steps,
one pass over each batch of 80, and no recurrence. It plays and learns at once.
"""

import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile

from _clock import parse_args, print_rate

GAMES = 16
RATE = re.compile(r"Fps is \(10 sec: ([0-9.]+)")
WARM_UP, EVERY = 2, 5  # lines with a rate that do not count, and seconds between them
FLAGS = {
    "env": "atari_breakout",
    "device": "cpu",
    "experiment": "rates",
    "rollout": 5,
    "recurrence": 1,
    "use_rnn": False,
    "batch_size": 80,
    "num_epochs": 1,
    "num_batches_per_epoch": 1,
    "decorrelate_envs_on_one_worker": False,
    "summaries_use_frameskip": False,
}


def main():
    """Measures and prints."""
    args = parse_args(__doc__, roms=".", seconds=60)
    cores, rates = len(os.sched_getaffinity(0)), []
    importer = os.path.join(os.path.dirname(sys.executable), "ale-import-roms")
    subprocess.run([importer, args.roms], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        flags = {**FLAGS, "train_dir": folder, "num_workers": cores}
        flags["num_envs_per_worker"] = GAMES // cores
        flags = [f"--{name}={value}" for name, value in flags.items()]
        command = [sys.executable, "-m", "sf_examples.atari.train_atari", *flags]
        job = subprocess.Popen(
            *[command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # its processes are ended with it
        )
        try:
            for line in job.stdout:
                rates += filter(None, map(float, RATE.findall(line)))  # 0 until it plays
                if len(rates) >= WARM_UP + args.seconds / EVERY:
                    break
        finally:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
    print_rate("steps", statistics.median(rates[WARM_UP:]))


if __name__ == "__main__":
    main()
