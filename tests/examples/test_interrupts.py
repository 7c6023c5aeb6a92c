"""Ctrl-C on the main job itself, at twenty moments: the end is quick, quiet and complete."""

import random
import signal
import time

import pytest

from tensorpack.tfutils.varmanip import load_checkpoint_vars
from tests.examples.conftest import EXAMPLE
from tests.harness import NEVER, Child
from tests.RL.players import breakout_rom

# What is printed last before the phase begins, and the flags that make the phase come and stay.
PHASES = {
    "populate": ("Populating replay memory", ["--init-memory-size", "20000"]),
    "train": ("Start Epoch 2", ["--init-memory-size", "200", "--steps-per-epoch", "5"]),
    "evaluate": (
        "Model saved to",
        ["--init-memory-size", "200", "--steps-per-epoch", "5", "--eval-every", "1"],
    ),
}
MOMENTS = [(phase, seed) for seed in range(7) for phase in sorted(PHASES)][:20]


@pytest.mark.slow
@pytest.mark.parametrize("phase, seed", MOMENTS)
def test_ctrl_c_ends_the_main_job_in_order(phase, seed, tmp_path):
    mark, flags = PHASES[phase]
    log_dir = tmp_path / "log"
    fixed = ["--rom", breakout_rom(), "--logdir", log_dir, "--memory-size", 20000, "--seed", seed]
    child = Child(EXAMPLE / "DQN.py", *fixed, *flags)
    child.wait_for(mark)
    time.sleep(random.Random(seed).uniform(0.0, 1.5))
    child.send(signal.SIGINT, group=True)
    start = time.monotonic()
    assert child.end(timeout=30) == 130, child.output
    assert time.monotonic() - start < 10, child.output  # with the state of the run saved in it
    assert "Detected Ctrl-C and exiting main loop." in child.output
    assert not [word for word in NEVER if word in child.output], child.output
    for index in log_dir.glob("model-*.index"):
        assert "conv0/W" in load_checkpoint_vars(str(index)[: -len(".index")])
