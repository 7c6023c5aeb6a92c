"""A supervised run that is killed and interrupted at random ends with the same variables."""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from tensorpack.tfutils.checkpoint import load_checkpoint_vars
from tests.harness import ROOT, Child, Zygote

PROGRAM = Path(__file__).with_name("train_regression.py")
EPOCHS, STEPS = 8, 100
READY = "Graph Finalized"
OTHER = os.environ.get("TENSORPACK_OTHER_PYTHON")


@pytest.fixture(scope="module")
def start():
    """Starts the program with its arguments, in a copy of a process with TensorFlow."""
    with Zygote() as zygote:
        yield lambda log_dir, *flags: zygote.run(log_dir.parent, PROGRAM, log_dir, *flags)


def whole_run(start, log_dir, *flags):
    """Runs to the end; returns the variables and the seconds that it trained."""
    child = start(log_dir, *flags)
    child.wait_for(READY)
    start = time.monotonic()
    assert child.end(timeout=120) == 0, child.output
    return variables(log_dir), time.monotonic() - start


def variables(log_dir):
    return load_checkpoint_vars(os.path.join(str(log_dir), f"model-{EPOCHS * STEPS}"))


def stop_at_random(start, log_dir, chance, seconds, flags, mark=READY):
    """Starts the run and ends it at a random moment behind a mark; returns what was done to it."""
    signum = chance.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
    wait = chance.uniform(0, seconds)
    child = start(log_dir, *flags)
    child.wait_for(mark)
    time.sleep(wait)
    child.send(signum)
    code = child.end(timeout=60)
    print(f"{signum!r} after {wait:.3f} s: {code}")  # noqa: T201
    # When the training is over, a signal finds Python's own handlers, or nobody.
    over = "Training has finished!" in child.output
    assert over or code == (-signum if signum == signal.SIGKILL else 128 + signum), child.output
    return signum, wait, code


def check_equal(got, expected, done):
    assert sorted(got) == sorted(expected)
    # How full the queue was is a matter of time, where it is filled ahead of the training.
    names = [name for name in got if not name.startswith("EMA/")]
    different = [name for name in names if not np.array_equal(got[name], expected[name])]
    assert not different, (different, done)


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.fault_row(11)
@pytest.mark.parametrize(
    "flags",
    [
        [],
        pytest.param(["--stateless"], marks=pytest.mark.nightly),
        pytest.param(["--ahead"], marks=pytest.mark.nightly),
    ],
    ids=str,
)
def test_stopped_at_random_moments(flags, start, tmp_path):
    expected, seconds = whole_run(start, tmp_path / "whole", *flags)
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"random.Random({seed}) draws the moments")  # noqa: T201
    chance, parts = random.Random(seed), tmp_path / "parts"
    # In the middle of a save: between its beginning and a little behind its end.
    done = [stop_at_random(start, parts, chance, 0.15, flags, "PHASE save") for _ in range(2)]
    done += [stop_at_random(start, parts, chance, seconds / 3, flags) for _ in range(3)]
    got, _ = whole_run(start, parts, *flags)
    check_equal(got, expected, done)


@pytest.mark.slow
@pytest.mark.skipif(OTHER is None, reason="TENSORPACK_OTHER_PYTHON has no other TensorFlow")
def test_a_run_of_the_other_tensorflow_continues_here(tmp_path):
    environ = dict(os.environ, PYTHONPATH=str(ROOT))
    half = [OTHER, str(PROGRAM), str(tmp_path), "--epochs", str(EPOCHS // 2)]
    subprocess.run(half, env=environ, check=True, stdout=subprocess.DEVNULL)
    child = Child(PROGRAM, tmp_path)
    assert child.end(timeout=120) == 0, child.output
    assert f"Start training with global_step={EPOCHS // 2 * STEPS}" in child.output
    assert "cannot be continued exactly" not in child.output
    assert variables(tmp_path)["global_step"] == EPOCHS * STEPS
    epochs = json.loads((tmp_path / "stats.json").read_text())
    assert [each["epoch_num"] for each in epochs] == list(range(1, EPOCHS + 1))
