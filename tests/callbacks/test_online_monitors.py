import sys
import types

import numpy as np
import pytest

from tensorpack.callbacks import CometMLMonitor, WandbMonitor
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer, when
from tests.contracts.callback import CallbackContract


class RecordedExperiment:
    """An experiment of `comet_ml` that writes on a tape what is sent to it."""

    def __init__(self, tape, kind, arguments):
        self.tape = tape
        self.tape.append((kind, arguments))
        self.key = arguments.get("previous_experiment", "key1")

    def get_key(self):
        return self.key

    def add_tags(self, tags):
        self.tape.append(("tags", list(tags)))

    def log_metric(self, name, value, step=None):
        self.tape.append((name, value, step))

    def log_image(self, image_data, name=None, step=None):
        self.tape.append((name, image_data.read()[1:4], step))

    def end(self):
        self.tape.append("end")


class RecordedRun:
    """A run of `wandb` that writes on a tape what is sent to it."""

    def __init__(self, tape, arguments):
        self.tape = tape
        self.tape.append(("init", arguments))
        self.id = arguments.get("id", "id1")

    def log(self, values, step=None):
        self.tape.append((values, step))

    def finish(self):
        self.tape.append("end")


@pytest.fixture
def tape(monkeypatch):
    """What is sent to either service."""
    tape = []
    comet = types.ModuleType("comet_ml")
    for kind in "Experiment", "ExistingExperiment":
        make = lambda kind=kind, **arguments: RecordedExperiment(tape, kind, arguments)  # noqa: E731
        setattr(comet, kind, make)
    wandb = types.ModuleType("wandb")
    wandb.init = lambda **arguments: RecordedRun(tape, arguments)
    wandb.Image = np.shape
    monkeypatch.setitem(sys.modules, "comet_ml", comet)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    return tape


@pytest.mark.parametrize("kind", [CometMLMonitor, WandbMonitor])
class TestOnlineMonitors(CallbackContract):
    @pytest.fixture(autouse=True)
    def make(self, kind, tape):
        self.make_callback = kind


def put(callback):
    callback.trainer.monitors.put_scalar("cost", 0.5)
    callback.trainer.monitors.put_image("frames", np.zeros([2, 4, 5, 3]))


def train(monitor, state=None):
    with tf.Graph().as_default():
        trainer = MiniTrainer([when(trigger_epoch=put)], [monitor])
        with trainer.session():
            if state is not None:
                monitor.load_state_dict(state)
            trainer.callbacks.before_train()
            trainer.run_epoch(1)
            return monitor.state_dict()


def test_comet_gets_scalars_and_images(tape):
    monitor = CometMLMonitor(tags=["a", "b"], project_name="mnist")
    assert tape == []
    state = train(monitor)
    sent = [("cost", 0.5, 2), ("frames", b"PNG", 2), ("frames_1", b"PNG", 2), "end"]
    assert tape == [("Experiment", {"project_name": "mnist"}), ("tags", ["a", "b"]), *sent]
    del tape[:]
    train(CometMLMonitor(project_name="mnist"), state)
    continued = {"previous_experiment": "key1", "project_name": "mnist"}
    assert tape == [("ExistingExperiment", continued), *sent]


def test_wandb_gets_scalars_and_images(tape):
    monitor = WandbMonitor(project="mnist")
    assert tape == []
    state = train(monitor)
    sent = [({"cost": 0.5}, 2), ({"frames": [(4, 5, 3)] * 2}, 2), "end"]
    assert tape == [("init", {"project": "mnist"}), *sent]
    del tape[:]
    train(WandbMonitor(project="mnist"), state)
    assert tape == [("init", {"id": "id1", "resume": "allow", "project": "mnist"}), *sent]


def test_comet_tags_an_experiment_that_is_given(tape):
    CometMLMonitor(RecordedExperiment(tape, "", {}), tags=["a", "b"])
    assert tape == [("", {}), ("tags", ["a", "b"])]


@pytest.mark.parametrize("kind, name", [(CometMLMonitor, "experiment"), (WandbMonitor, "run")])
def test_one_that_is_given_is_neither_opened_nor_ended(kind, name, tape):
    given = RecordedExperiment(tape, "", {}) if name == "experiment" else RecordedRun(tape, {})
    monitor = kind(given)
    assert getattr(monitor, name) is given
    assert train(monitor) == {}
    assert "end" not in tape and len(tape) > 2
    with pytest.raises(TypeError, match=f"{kind.__name__}: project would be"):
        kind(given, project="mnist")


def test_one_is_opened_when_it_is_asked_for(tape):
    monitor = CometMLMonitor()
    assert monitor.experiment is monitor.experiment
    assert [each for each in tape if each[0] == "Experiment"] == [("Experiment", {})]


@pytest.mark.parametrize("kind, name", [(CometMLMonitor, "comet_ml"), (WandbMonitor, "wandb")])
def test_a_missing_package_is_named(kind, name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=f"pip install {name}"):
        kind()
