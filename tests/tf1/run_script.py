"""Runs scripts by `python -m tensorpack.tf1`."""

import os
import subprocess
import sys

from tests.checks import ROOT


def run_script(*args):
    """Runs a script with arguments until it ends; shows what it printed if the test fails."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    environ.pop("TF_CPP_MIN_LOG_LEVEL", None)  # as it is where a user starts it
    done = subprocess.run(
        [sys.executable, "-m", "tensorpack.tf1", *map(str, args)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environ,
        timeout=300,
    )
    sys.stdout.write(done.stdout)
    return done
