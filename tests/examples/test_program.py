"""The program on the real game: the log of the seed, line for line in form, and the other tasks."""

import re
import signal

import pytest

from tests.examples.conftest import EXAMPLE
from tests.examples.test_dqn import SCALARS
from tests.examples.test_dqn_model import SHAPES, VARIABLES
from tests.harness import Child
from tests.RL.players import breakout_rom

SCRIPT = EXAMPLE / "DQN.py"

TINY = ["--batch-size", "16", "--memory-size", "2000", "--init-memory-size", "100", "--seed", "3"]

# Below are the lines from the first one to the second "Start Epoch", without time and place.
# {} is a number, {logdir} the log directory.
TABLE = """
Model Parameters:
name           shape               dim
-------------  --------------  -------
conv0/W:0      [8, 8, 4, 32]      8192
conv0/b:0      [32]                 32
conv0/alpha:0  []                    1
conv1/W:0      [4, 4, 32, 64]    32768
conv1/b:0      [64]                 64
conv1/alpha:0  []                    1
conv2/W:0      [3, 3, 64, 64]    36864
conv2/b:0      [64]                 64
conv2/alpha:0  []                    1
fc0/W:0        [7744, 512]     3964928
fc0/b:0        [512]               512
fct/W:0        [512, 4]           2048
fct/b:0        [4]                   4
Total #vars=13, #param=4045479 (15.43 MB assuming all float32)
""".split("\n")[1:-1]

BEFORE_TRAINING = [
    "Number of Legal actions: 4",
    "Use {logdir}/hyper.txt to control hyperparam learning_rate.",
    "Setting up the queue for CPU prefetching ...",
    *SHAPES,
    *("target/" + line for line in SHAPES),
    *TABLE,
    "Setup callbacks graph ...",
    *(f"target/{name} <- {name}" for name in VARIABLES),
    "Building predictor tower 'towerp0' on device /gpu:0 ...",
    "Maintain moving average summary of 16 tensors.",
    "Creating the session ...",
    "Global variables initialized.",
    "Initializing the session ...",
    "Graph Finalized.",
    "Running Op PeriodicTrigger/RunOp/update_target_network ...",
    "Populating replay memory with epsilon=1.0 ...",
    "exploration at epoch 1 will change to 1.00000000",
    "Starting EnqueueThread ...",
    "Start Epoch 1 ...",
]

PRINTED = sorted(SCALARS - {"mean_score", "max_score", "epoch_num", "global_step"})

FIRST_EPOCH = [
    "Running Op PeriodicTrigger/RunOp/update_target_network ...",
    "Running Op PeriodicTrigger/RunOp/update_target_network ...",
    "Epoch 1 (global_step 6) finished, time:{} sec.",
    "Model saved to {logdir}/model-6.",
    "exploration at epoch 2 will change to 0.91000000",
    *(name + ": {}" for name in PRINTED),
    "Start Epoch 2 ...",
]

PREFIX = re.compile(r"\[\d{4} \d\d:\d\d:\d\d @\w+\.py:\d+\] ")


def messages(lines):
    """The lines without their beginnings; what only a machine without a GPU says is left out."""
    said = [PREFIX.sub("", line).rstrip() for line in lines]
    return [line for line in said if not line.startswith("TensorFlow has no GPU")]


def check_like(lines, expected):
    """Compares line by line."""
    for line, wanted in zip(lines, expected):
        pattern = re.escape(wanted).replace(re.escape("{}"), r"-?[\d.]+(e-?\d+)?")
        assert re.fullmatch(pattern, line), f"got {line!r}, expected {wanted!r}"
    assert len(lines) >= len(expected)


@pytest.mark.slow
def test_the_log_of_the_seed(tmp_path):
    rom, logdir = breakout_rom(), str(tmp_path)
    sizes = ["--init-memory-size", "800", "--steps-per-epoch", "6", "--max-epoch", "2"]
    child = Child(SCRIPT, "--rom", rom, "--logdir", logdir, *TINY, *sizes, "--target-sync", "3")
    assert child.end(timeout=120) == 0, child.output
    assert f"ROM: {rom}, Num Actions: 4" in child.lines[0]
    assert "800/800" in child.output and "6/6" in child.output
    lines = (tmp_path / "log.log").read_text().splitlines()
    said = messages(lines)
    assert re.fullmatch(r"Argv: .*DQN\.py --rom .*", said[0])
    expected = [line.replace("{logdir}", logdir) for line in BEFORE_TRAINING + FIRST_EPOCH]
    check_like(said[1:], expected)
    assert said[-1] == "Training has finished!"
    # every line but the rows of the table says when and where it was logged
    assert messages(line for line in lines if not PREFIX.match(line)) == TABLE[1:]


def test_ctrl_c_before_the_training_exits_with_130(tmp_path):
    child = Child(SCRIPT, "--rom", breakout_rom(), "--logdir", tmp_path, *TINY)
    child.wait_for("ROM: ")  # TensorFlow is being loaded
    child.send(signal.SIGINT)
    assert child.end(timeout=30) == 130, child.output


@pytest.mark.slow
def test_what_was_trained_is_evaluated_and_played(tmp_path):
    same = [SCRIPT, "--rom", breakout_rom(), "--logdir", tmp_path]
    sizes = ["--steps-per-epoch", "2", "--max-epoch", "1"]
    child = Child(*same, *TINY, *sizes)
    assert child.end(timeout=120) == 0, child.output
    child = Child(*same, "--load", tmp_path, "--task", "eval", "--eval-episodes", "2")
    assert child.end(timeout=120) == 0, child.output
    assert re.search(r"Average Score: [\d.]+; Max Score: [\d.]+", child.output)
    video = tmp_path / "game.mp4"
    child = Child(*same, "--load", tmp_path, "--task", "play", "--video", video)
    assert child.end(timeout=120) == 0, child.output
    assert re.search(r"Total: [\d.]+", child.output)
    assert video.stat().st_size > 10000
