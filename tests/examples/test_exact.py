"""A deterministic run that is killed and interrupted over and over ends as if nothing had been."""

import random
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from tensorpack.tfutils.varmanip import load_checkpoint_vars
from tests.computing import need_bf16
from tests.examples.conftest import EXAMPLE
from tests.examples.running import read_stats
from tests.harness import Child
from tests.RL.players import breakout_rom

STEPS, EPOCHS = 20, 3
SIZES = [
    *["--batch-size", 8, "--memory-size", 300, "--init-memory-size", 100, "--target-sync", 4],
    *["--steps-per-epoch", STEPS, "--max-epoch", EPOCHS, "--eval-every", 2, "--eval-episodes", 1],
    *["--seed", 5, "--deterministic"],
]
STOPS = [signal.SIGKILL, signal.SIGINT, signal.SIGKILL]
READY = "Graph Finalized"  # from here on it is the run itself; before, TensorFlow is loaded
SCORES = ["epoch_num", "expreplay/mean_score", "expreplay/max_score", "mean_score", "max_score"]
OVER = "Training has finished!"
CODES = {signal.SIGKILL: -signal.SIGKILL, signal.SIGINT: 130}


def command(game, log_dir):
    if game.startswith("catch"):
        program = [Path(__file__).with_name("catch_program.py"), "--rom", "catch.bin"]
    else:
        program = [EXAMPLE / "DQN.py", "--rom", breakout_rom()]
    precision = ["--precision", "bf16"] if game.endswith("bf16") else []
    return [*program, *SIZES, *precision, "--logdir", log_dir]


def scores(log_dir):
    """What depends on games alone, of each epoch; moving averages may be of a step earlier."""
    return [{name: epoch.get(name) for name in SCORES} for epoch in read_stats(log_dir)]


def run_to_the_end(arguments):
    """Returns how many seconds it took from `READY` on."""
    child = Child(*arguments)
    child.wait_for(READY)
    start = time.monotonic()
    assert child.end(timeout=120) == 0, child.output
    return time.monotonic() - start


def stop(arguments, signum, seconds):
    """Lets a run go on for some seconds and stops it; returns whether it was not over before."""
    child = Child(*arguments)
    child.wait_for(READY)
    time.sleep(seconds)
    child.send(signum)
    code = child.end(timeout=60)
    over = OVER in child.output
    assert over or code == CODES[signum], child.output
    return not over


@pytest.mark.slow
@pytest.mark.fault_row(11)
@pytest.mark.parametrize("game", ["catch", "breakout", "catch-bf16"])
def test_a_run_that_was_stopped_many_times_ends_with_the_same_variables(game, tmp_path):
    if game.endswith("bf16"):
        need_bf16()
    took = run_to_the_end(command(game, tmp_path / "whole"))
    arguments = [*command(game, tmp_path / "parts"), "--resume", "auto"]
    chance = random.Random()
    moments = [(signum, chance.uniform(0, took)) for signum in STOPS]
    stopped = [stop(arguments, *moment) for moment in moments]
    run_to_the_end(arguments)
    whole, parts = (
        load_checkpoint_vars(str(tmp_path / name / f"model-{STEPS * EPOCHS}"))
        for name in ("whole", "parts")
    )
    assert sorted(whole) == sorted(parts)
    different = [name for name in whole if not np.array_equal(whole[name], parts[name])]
    assert not different, (moments, stopped)
    assert scores(tmp_path / "whole") == scores(tmp_path / "parts"), (moments, stopped)
