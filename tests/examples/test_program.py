"""The program on the real game: the log of the seed, line for line in form, and Ctrl-C."""

import re
import time

import pytest

from tests.examples.program import Program, breakout
from tests.examples.test_dqn import SCALARS
from tests.examples.test_dqn_model import SHAPES, VARIABLES

TINY = ["--batch-size", "16", "--memory-size", "2000", "--seed", "3"]

# The lines from the first one to the second "Start Epoch", without time and place. {} is a number.
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
    "Use train_log/DQN-breakout/hyper.txt to control hyperparam learning_rate.",
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
    "Model saved to train_log/DQN-breakout/model-6.",
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
    """Compares line by line; `{}` in what is expected is any number."""
    patterns = [re.escape(line).replace(r"\{\}", r"-?[\d.]+(e-?\d+)?") for line in expected]
    for line, pattern, wanted in zip(lines, patterns, expected):
        assert re.fullmatch(pattern, line), f"got {line!r}, expected {wanted!r}"
    assert len(lines) >= len(expected)


@pytest.mark.slow
def test_the_log_of_the_seed(tmp_path):
    rom = breakout()
    sizes = ["--init-memory-size", "800", "--steps-per-epoch", "6", "--max-epoch", "2"]
    with Program(tmp_path, "--rom", rom, *TINY, *sizes, "--target-sync", "3") as program:
        assert program.wait() == 0
    said = messages(program.lines)
    assert said[0] == f"ROM: {rom}, Num Actions: 4"
    assert re.fullmatch(r"Argv: .*DQN\.py --rom .*", said[1])
    expected = BEFORE_TRAINING + FIRST_EPOCH
    check_like(said[2:], expected)
    assert said[-1] == "Training has finished!"
    # every line but the rows of the table says where it comes from
    without = [line for line in program.lines if not PREFIX.match(line)]
    assert messages(without) == TABLE[1:]
    logged = (tmp_path / "train_log" / "DQN-breakout" / "log.log").read_text().split("\n")
    assert messages(logged)[: len(expected) + 1] == said[1 : len(expected) + 2]
    bar = "".join(program.errors)
    assert "800/800" in bar and "6/6" in bar


@pytest.mark.slow
@pytest.mark.parametrize(
    "phase, flags, seconds",
    [
        ("Populating replay memory", ["--init-memory-size", "2000"], 0.3),
        ("Start Epoch 1", ["--init-memory-size", "100"], 3.0),
        (
            "exploration at epoch 2",  # right before the evaluation
            [
                *["--init-memory-size", "100", "--steps-per-epoch", "2", "--eval-every", "1"],
                *["--eval-episodes", "1000"],
            ],
            1.0,
        ),
    ],
)
def test_ctrl_c_ends_the_run_in_order(phase, flags, seconds, tmp_path):
    with Program(tmp_path, "--rom", breakout(), *TINY, *flags) as program:
        program.wait_for(phase)
        time.sleep(seconds)
        program.interrupt()
        begin = time.monotonic()
        assert program.wait(30) == 130
        assert time.monotonic() - begin < 5
    assert messages(program.lines)[-1] == "Detected Ctrl-C and exiting main loop."
    assert [line for line in program.lines if "] ERR " in line] == []
    said = "\n".join(program.errors)
    for bad in ["Skipping cancelled", "Traceback", "Segmentation"]:
        assert bad not in said


def test_ctrl_c_before_the_training_exits_with_130(tmp_path):
    with Program(tmp_path, "--rom", breakout(), *TINY, "--init-memory-size", "100") as program:
        program.wait_for("ROM: ")  # TensorFlow is being loaded
        program.interrupt()
        assert program.wait(30) == 130
