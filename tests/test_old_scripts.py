"""Whole programs in the style of each year run unchanged, on either TensorFlow.

Each of `old_scripts` takes `--epochs N`, `--load CHECKPOINT` and `--predict`. It trains for two
short epochs, starts again from its checkpoint for another one, and predicts with that. The year in
a name is that of the spellings. None imports another one: people copied a script and changed it.
"""

import json
import os

import pytest

from tensorpack.tf1 import FOLDER
from tests.checks import ROOT
from tests.harness import Zygote

SCRIPTS = sorted((ROOT / "tests" / "old_scripts").glob("*_20??.py"))
# In each run of CI: one of each kind of trainer and of input.
OFTEN = ["actor_critic_2017", "gan_two_trainers_2017", "mnist_tflayers_2018"]


def cases():
    for script in SCRIPTS:
        marks = [] if script.stem in OFTEN else [pytest.mark.nightly]
        yield pytest.param(script, marks=[pytest.mark.slow, *marks], id=script.stem)


def test_there_are_forty():
    assert len(SCRIPTS) >= 40


@pytest.fixture(scope="module")
def zygote():
    """The process whose copies run the scripts, with TensorFlow as `tensorpack.tf1` gives it."""
    with Zygote(PYTHONPATH=os.pathsep.join([FOLDER, str(ROOT)])) as process:
        yield process


@pytest.mark.parametrize("script", list(cases()))
def test_a_script_trains_goes_on_and_predicts(script, tmp_path, zygote):
    def run(*flags):
        environ = {"TF_USE_LEGACY_KERAS": "1"}  # as the zygote's, when it had loaded TensorFlow
        child = zygote.run(tmp_path, script, *flags, env=environ)
        assert child.end(timeout=180) == 0, child.output[-8000:]
        return child.output

    run("--epochs", "2")
    log = tmp_path / "train_log" / script.stem
    epochs = json.loads((log / "stats.json").read_text())
    assert [each["epoch_num"] for each in epochs] == [1, 2]
    loaded = "--load", log / "checkpoint"
    assert f"global_step={epochs[-1]['global_step']}" in run("--epochs", "1", *loaded)
    assert "prediction:" in run("--predict", *loaded)


SOCKETS_AT_EXIT = """
import atexit, sys, time
sys.path.insert(0, {folder!r})
import actor_critic_2017 as script

def init(self, up, down, init=script.Master.__init__):
    init(self, up, down)
    atexit.register(clean, [self.incoming, self.outgoing], self.context)

def clean(sockets, context):
    for each in sockets:
        each.close()
    context.term()
    print("closed")

def act(self, action, act=script.Corridor.action):
    time.sleep(script.np.random.rand() * 0.02)  # slower than the training
    return act(self, action)

script.Master.__init__, script.Corridor.action = init, act
script.logger.auto_set_dir()
script.QueueInputTrainer(script.get_config(1)).train()
"""


@pytest.mark.slow
def test_a_program_may_close_at_its_exit_what_its_threads_have_read(tmp_path, zygote):
    # ZeroMQ aborts, or hangs, if a thread is still in recv()
    script = tmp_path / "train.py"
    script.write_text(SOCKETS_AT_EXIT.format(folder=str(SCRIPTS[0].parent)))
    child = zygote.run(tmp_path, script, env={"TF_USE_LEGACY_KERAS": "1"})
    assert child.end(timeout=180) == 0, child.output[-8000:]
    assert "closed" in child.output and "still runs" not in child.output
