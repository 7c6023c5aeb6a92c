"""A learner and two actors as three processes under the launcher, on Breakout."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.examples.conftest import EXAMPLE
from tests.examples.small_dqn import read_stats
from tests.harness import NEVER, Child
from tests.RL.players import breakout_rom

SIZES = [
    *["--batch-size", 8, "--memory-size", 3000, "--init-memory-size", 300, "--num-players", 2],
    *["--steps-per-epoch", 40, "--weights-every", 20, "--target-sync", 20, "--eval-every", 9],
]


def start(log_dir, *flags):
    program = [EXAMPLE / "DQN.py", "--rom", breakout_rom(), "--actors", "--logdir", log_dir]
    return Child("-m", "tensorpack.launch", "--workers", 3, *program, *SIZES, *flags)


def workers_of(launcher):
    """The process ids of the workers, in order."""
    pid = launcher.process.pid
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.one_row
@pytest.mark.slow
def test_a_group_is_interrupted_resumed_and_ended_by_the_loss_of_an_actor(tmp_path):
    group = start(tmp_path / "log")
    group.wait_for("Start Epoch 2", timeout=240)
    group.send(signal.SIGINT)
    assert group.end(timeout=60) == 130, group.output
    assert not [word for word in NEVER if word in group.output], group.output
    assert "Populating replay memory with" in group.output
    assert read_stats(str(tmp_path / "log"))[0]["global_step"] == 40

    group = start(tmp_path / "log", "--resume", "auto")
    group.wait_for("Start Epoch 3", timeout=240)
    assert "new ones begin. Actors do not save games." in group.output
    assert "Populating" not in group.output
    os.kill(workers_of(group)[1], signal.SIGKILL)
    begin = time.monotonic()
    assert group.end(timeout=60) == 128 + signal.SIGKILL, group.output
    assert time.monotonic() - begin < 20
    said = [line for line in group.output.splitlines() if line.startswith("[launch]")]
    assert any("worker 1" in line for line in said), group.output
