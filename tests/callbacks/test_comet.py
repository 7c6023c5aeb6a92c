import sys
import types

import numpy as np
import pytest

from tensorpack.callbacks import CometMLMonitor
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


@pytest.fixture
def tape(monkeypatch):
    """What is sent to the service."""
    tape = []
    comet = types.ModuleType("comet_ml")
    for kind in "Experiment", "ExistingExperiment":
        make = lambda kind=kind, **arguments: RecordedExperiment(tape, kind, arguments)  # noqa: E731
        setattr(comet, kind, make)
    monkeypatch.setitem(sys.modules, "comet_ml", comet)
    return tape


class TestCometMLMonitor(CallbackContract):
    @pytest.fixture(autouse=True)
    def make(self, tape):
        self.make_callback = CometMLMonitor


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


IMAGES = [("frames", b"PNG", 2), ("frames_1", b"PNG", 2)]


def test_comet_gets_scalars_and_images(tape):
    monitor = CometMLMonitor(tags=["a", "b"], project_name="mnist")
    assert tape == []
    state = train(monitor)
    sent = [("cost", 0.5, 2), *IMAGES, "end"]
    assert tape == [("Experiment", {"project_name": "mnist"}), ("tags", ["a", "b"]), *sent]
    del tape[:]
    train(CometMLMonitor(project_name="mnist"), state)
    continued = {"previous_experiment": "key1", "project_name": "mnist"}
    assert tape == [("ExistingExperiment", continued), *sent]


def test_one_that_is_given_is_neither_opened_nor_ended(tape):
    given = RecordedExperiment(tape, "", {})
    monitor = CometMLMonitor(given, tags=["a", "b"])
    assert monitor.experiment is given
    assert train(monitor) == {}
    assert tape == [("", {}), ("tags", ["a", "b"]), ("cost", 0.5, 2), *IMAGES]
