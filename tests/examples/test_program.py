"""The program on Breakout: its log, line for line in form, its three tasks, and Ctrl-C."""

import re
import signal
import time

import DQN
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.devices import device_text
from tensorpack.tfutils.varmanip import load_checkpoint_vars
from tests.examples.conftest import EXAMPLE
from tests.examples.test_dqn import SCALARS
from tests.examples.test_dqn_model import SHAPES, VARIABLES
from tests.harness import NEVER, Child
from tests.RL.players import breakout_rom

SCRIPT = EXAMPLE / "DQN.py"

TINY = [
    *["--batch-size", "16", "--memory-size", "2000", "--init-memory-size", "800", "--seed", "3"],
    *["--steps-per-epoch", "6", "--max-epoch", "2", "--target-sync", "3"],
]

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
    f"Building predictor tower 'towerp0' on device {device_text(0)} ...",
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

SCORES = ["expreplay/max_score", "expreplay/mean_score", "cost"]
SILENT = {"mean_score", "max_score", "epoch_num", "global_step"}
STATISTICS = ("param-summary/", "SummaryGradient/")
PRINTED = SCORES + sorted(
    SCALARS - SILENT - set(SCORES), key=lambda name: (name.startswith(STATISTICS), name)
)

FIRST_EPOCH = [
    "Running Op PeriodicTrigger/RunOp/update_target_network ...",
    "Running Op PeriodicTrigger/RunOp/update_target_network ...",
    "Epoch 1 (global_step 6) finished, time:{} sec.",
    "Model saved to {logdir}/model-6.",
    "A checkpoint takes {} MB; 10 are kept, {} MB in all.",
    "exploration at epoch 2 will change to 0.91000000",
    *(name + ": {}" for name in PRINTED),
    "Start Epoch 2 ... Left: 1 of 2 epochs, about {} seconds.",
]

SETTINGS = """
Settings:
algo=Double, optimizer_epsilon=0.001, double=True, dueling=False, noisy=False, munchausen=False,
n_step=1, priority=0.0, importance_weights=True, discount=0.99, network=2017, loss=huber,
optimizer=adam, max_gradient_norm=10.0, learning_rate=by_epochs, exploration_steps=by_epochs,
final_exploration=0.01, random_repeat=1, target_sync=3, batch_size=16, update_frequency=4,
memory_size=2000, init_memory_size=800, sticky=0.0, life_loss_ends=True, noop_max=30,
fire_on_reset=False, max_frames=120000, eval_epsilon=0.001, idle_frames=3600
""".split("\n")[1:-1]

PREFIX = re.compile(r"\[\d{4} \d\d:\d\d:\d\d @\w+\.py:\d+\] ")
SLOW = re.compile(r"Callbacks took [\d.]+ sec in total\. .*")  # only where the machine is slow


EVALUATED = ["--steps-per-epoch", "5", "--eval-every", "1"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The log directory of a run of two epochs, and what the run printed."""
    logdir = tmp_path_factory.mktemp("trained")
    child = Child(SCRIPT, "--rom", breakout_rom(), "--logdir", logdir, "--report", *TINY)
    assert child.end(timeout=120) == 0, child.output
    return logdir, child.output


def messages(lines):
    """The lines without their beginnings."""
    return [PREFIX.sub("", line).rstrip() for line in lines]


@pytest.mark.slow
def test_the_log_has_the_lines_that_users_of_tensorpack_know(trained):
    logdir, output = trained
    assert f"ROM: {breakout_rom()}, Num Actions: 4" in output.splitlines()[0]
    assert "800/800" in output and "6/6" in output
    lines = (logdir / "log.log").read_text().splitlines()
    said = [line for line in messages(lines) if not SLOW.fullmatch(line)]
    assert re.fullmatch(r"Argv: .*DQN\.py --rom .*", said[0])
    expected = SETTINGS + BEFORE_TRAINING + FIRST_EPOCH
    expected = [line.replace("{logdir}", str(logdir)) for line in expected]
    assert len(said) > len(expected)
    for line, wanted in zip(said[1:], expected):
        pattern = re.escape(wanted).replace(re.escape("{}"), r"-?[\d.]+(e-?\d+)?")
        assert re.fullmatch(pattern, line), f"got {line!r}, expected {wanted!r}"
    assert said[-6:-4] == ["Training has finished!", f"The model is {logdir}/model-12."]
    assert [line.partition(":")[0] for line in said[-4:]] == [
        "To train longer, with more epochs",
        "To evaluate it",
        "To watch it play",
        f"The page about this run is {logdir}/report.html.",
    ]
    page = (logdir / "report.html").read_text(encoding="utf-8")
    assert "epoch 2, step 12" in page and "4,045,479 numbers" in page and "To evaluate it" in page
    # every line but the rows of tables says when and where it was logged
    assert messages(line for line in lines if not PREFIX.match(line)) == [
        *SETTINGS[1:],
        *TABLE[1:],
    ]


@pytest.mark.one_row
@pytest.mark.slow
def test_a_trained_network_is_evaluated_and_played(trained, tmp_path, capsys):
    video = tmp_path / "game.mp4"
    # An agent that has learned nothing may wait for ever without pressing FIRE.
    same = ["--rom", breakout_rom(), "--load", str(trained[0]), "--seed", "1"]
    same += ["--max-frames", "4000"]
    for flags, said in [
        (["--task", "eval", "--eval-episodes", "2"], r"Average Score: [\d.]+; Max Score: [\d.]+"),
        (["--task", "play", "--video", str(video)], r"Total: [\d.]+"),
    ]:
        with tf.Graph().as_default():
            DQN.main([*same, *flags])
        assert re.search(said, capsys.readouterr().out)
    assert video.stat().st_size > 10000


def test_ctrl_c_before_the_training_exits_with_130(tmp_path):
    child = Child(SCRIPT, "--rom", breakout_rom(), "--logdir", tmp_path, *TINY)
    child.wait_for("ROM: ")  # TensorFlow is being loaded
    child.send(signal.SIGINT)
    assert child.end(timeout=30) == 130, child.output


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.parametrize(
    "mark, size", [("Populating replay memory", "20000"), ("Model saved to", "200")]
)
def test_ctrl_c_while_games_are_played_ends_the_training_in_order(mark, size, tmp_path):
    log_dir = tmp_path / "log"
    fixed = ["--rom", breakout_rom(), "--logdir", log_dir, "--memory-size", 20000, "--seed", 0]
    child = Child(SCRIPT, *fixed, "--init-memory-size", size, *EVALUATED)
    child.wait_for(mark)
    time.sleep(1.0)
    child.send(signal.SIGINT, group=True)
    start = time.monotonic()
    assert child.end(timeout=30) == 130, child.output
    assert time.monotonic() - start < 10, child.output  # with the state of the run saved in it
    assert "Detected Ctrl-C and exiting main loop." in child.output
    assert not [word for word in NEVER if word in child.output], child.output
    for index in log_dir.glob("model-*.index"):
        assert "conv0/W" in load_checkpoint_vars(str(index)[: -len(".index")])
