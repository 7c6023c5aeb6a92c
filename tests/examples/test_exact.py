"""A deterministic run that is killed, interrupted and resumed equals one without a stop."""

import random
import signal
import time

import numpy as np
import pytest

from tensorpack.tfutils.varmanip import load_checkpoint_vars
from tests.examples.conftest import EXAMPLE
from tests.examples.small_dqn import interrupt_twice, read_stats, small_catch, train
from tests.RL.players import breakout_rom

STEPS, EPOCHS = 20, 3
SIZES = [
    *["--batch-size", 8, "--memory-size", 300, "--init-memory-size", 100, "--target-sync", 4],
    *["--steps-per-epoch", STEPS, "--max-epoch", EPOCHS, "--eval-every", 2, "--eval-episodes", 1],
    *["--seed", 5, "--deterministic", "--sticky", 0.25, "--random-repeat", 9, "--fire-on-reset"],
    *["--exploration-steps", 120, "--max-frames", 2000],  # a bad policy may never end a game
]
READY = "Graph Finalized"  # the run itself begins here, after TensorFlow is loaded
SECONDS = 4.0  # of which a run is stopped in one
SCORES = [
    *["epoch_num", "expreplay/mean_score", "expreplay/max_score", "mean_score", "max_score"],
    *["agent_steps", "emulator_frames", "episodes", "exploration"],
]
OVER = "Training has finished!"
CODES = {signal.SIGKILL: -signal.SIGKILL, signal.SIGINT: 130}


def assert_equal_runs(directory, other, step):
    """Compares all variables, the scores of all epochs, and the games of the training."""
    whole, parts = (
        load_checkpoint_vars(str(path / f"model-{step}")) for path in (directory, other)
    )
    assert sorted(whole) == sorted(parts)
    assert not [name for name in whole if not np.array_equal(whole[name], parts[name])]
    # moving averages in stats.json may be of a step earlier, so the scores alone are compared
    ours, theirs = (
        [{name: epoch.get(name) for name in SCORES} for epoch in read_stats(path)]
        for path in (directory, other)
    )
    assert ours == theirs
    ours, theirs = ((path / "episodes.csv").read_text() for path in (directory, other))
    assert ours == theirs


# All that draws random numbers in the graph, and all that is saved with the memory.
MUCH = "--algo IQN --noisy --munchausen --n-step 3 --priority 0.5"


@pytest.mark.slow
@pytest.mark.one_row
def test_a_run_that_was_interrupted_twice_equals_a_whole_one(tmp_path, log_dir):
    def learn(*flags, **options):
        train(small_catch(), *flags, *MUCH.split(), **options)

    assert_equal_runs(*interrupt_twice(learn, tmp_path), 20)


def stop(child, signum, seconds):
    """Lets a run go on for some seconds and stops it, if it is not over before."""
    child.wait_for(READY)
    time.sleep(seconds)
    child.send(signum)
    code = child.end(timeout=60)
    assert OVER in child.output or code == CODES[signum], child.output


@pytest.mark.fault_row(11)
@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param(1, marks=[pytest.mark.slow, pytest.mark.one_row]),
        pytest.param(3, marks=pytest.mark.soak),
    ],
)
def test_a_run_that_was_killed_and_interrupted_equals_a_whole_one(rounds, start, tmp_path):
    program = [EXAMPLE / "DQN.py", "--rom", breakout_rom(), *SIZES, "--logdir"]
    whole = start(*program, tmp_path / "whole")  # at the same time as the other one
    arguments = [*program, tmp_path / "parts", "--resume", "auto"]
    chance = random.SystemRandom()  # one that no test before has seeded
    for signum in rounds * list(CODES):
        seconds = chance.uniform(0, SECONDS)
        print(f"{signum!r} after {seconds:.3f} s")  # noqa: T201
        stop(start(*arguments), signum, seconds)
    last = start(*arguments)
    assert last.end(timeout=120) == 0, last.output
    assert whole.end(timeout=120) == 0, whole.output
    assert_equal_runs(tmp_path / "whole", tmp_path / "parts", STEPS * EPOCHS)
