import os
import shutil

import numpy as np

from tensorpack.callbacks import Callback, TFEventWriter
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer, log_directory, log_lines
from tests.contracts.callback import CallbackContract


class TestTFEventWriter(CallbackContract):
    def make_callback(self):
        return TFEventWriter()


def events(directory):
    """All events of a directory, file by file; read record by record, as TensorBoard does."""
    found = []
    for path in sorted(os.listdir(str(directory))):
        for record in tf.io.tf_record_iterator(os.path.join(str(directory), path)):
            found.append(tf.Event.FromString(record))
    return found


def scalars(directory):
    return [
        (event.step, value.tag, value.simple_value)
        for event in events(directory)
        for value in event.summary.value
    ]


class Putting(Callback):
    def __init__(self, action=lambda callback: None):
        self._action = action

    def _trigger_epoch(self):
        self.trainer.monitors.put_scalar("epoch", self.epoch_num)
        self._action(self)


def run(directory, action=lambda callback: None, max_epoch=2, init_step=0, **options):
    writer = TFEventWriter(str(directory), **options)
    return MiniTrainer(
        [Putting(action)], [writer], max_epoch=max_epoch, init_step=init_step
    ).train()


def test_a_file_has_its_version_the_graph_and_the_scalars(tmp_path):
    trainer = run(tmp_path)
    version, graph = events(tmp_path)[:2]
    assert version.file_version == "brain.Event:2"
    assert tf.GraphDef.FromString(graph.graph_def) == trainer.graph.as_graph_def()
    assert scalars(tmp_path) == [(2, "epoch", 1.0), (4, "epoch", 2.0)]
    assert all(event.wall_time > 1e9 for event in events(tmp_path))
    assert len(os.listdir(str(tmp_path))) == 1
    assert os.listdir(str(tmp_path))[0].startswith("events.out.tfevents.")


def test_what_is_written_is_in_the_file_after_each_epoch(tmp_path):
    seen = []

    class Reading(Callback):
        def _before_epoch(self):
            seen.append(scalars(tmp_path))

    MiniTrainer([Putting(), Reading()], [TFEventWriter(str(tmp_path))], max_epoch=2).train()
    assert seen == [[], [(2, "epoch", 1.0)]]


def test_a_long_queue_is_written_early(tmp_path):
    counts = []

    def put_many(callback):
        for i in range(5):
            callback.trainer.monitors.put_scalar("many", i)
            counts.append(len(scalars(tmp_path)))

    run(tmp_path, put_many, max_epoch=1, max_queue=2)
    assert counts == [0, 3, 3, 3, 6]


def test_each_epoch_has_its_file_if_so_wished(tmp_path):
    run(tmp_path, split_files=True)
    assert len(os.listdir(str(tmp_path))) >= 2
    assert scalars(tmp_path) == [(2, "epoch", 1.0), (4, "epoch", 2.0)]


def test_images_and_events_are_written(tmp_path):
    def put(callback):
        callback.trainer.monitors.put_image("frame", np.zeros([2, 3]))
        callback.trainer.monitors.put_event(tf.Event(tagged_run_metadata={"tag": "trace"}))

    run(tmp_path, put, max_epoch=1)
    image, event = events(tmp_path)[-2:]
    assert (image.summary.value[0].image.height, image.summary.value[0].image.width) == (2, 3)
    assert (event.step, event.tagged_run_metadata.tag) == (2, "trace")


def test_a_run_that_goes_on_takes_back_what_lies_ahead(tmp_path):
    run(tmp_path, init_step=10, max_epoch=1)
    start = [event for event in events(tmp_path) if event.session_log.status]
    assert [(event.step, event.session_log.status) for event in start] == [
        (11, tf.SessionLog.START)
    ]


def test_the_log_directory_is_the_default(tmp_path):
    with log_directory(tmp_path):
        MiniTrainer([Putting()], [TFEventWriter()]).train()
    assert scalars(tmp_path) == [(2, "epoch", 1.0)]


def test_without_a_log_directory_it_does_nothing(capsys):
    MiniTrainer([Putting()], [TFEventWriter()]).train()
    assert log_lines(capsys) == ["logger directory was not set. Ignore TFEventWriter."]


def test_a_full_disk_costs_one_warning(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tensorpack.callbacks.event_writer._new_file", lambda _: "/dev/full")
    run(tmp_path, max_epoch=3)
    lines = log_lines(capsys)
    assert len(lines) == 1
    assert lines[0].startswith(f"Cannot write events to {tmp_path}, they are lost: ")


def test_a_directory_that_was_away_for_an_epoch_is_used_again(tmp_path, capsys):
    directory = tmp_path / "log"

    def break_it(callback):
        if callback.epoch_num == 1:
            shutil.rmtree(str(directory))
            directory.write_text("in the way")
            callback.trainer.monitors.put_scalar("lost", 1)
        elif callback.epoch_num == 2:
            directory.unlink()

    run(directory, break_it, max_epoch=3, split_files=True)
    assert (6, "epoch", 3.0) in scalars(directory)
    assert len([line for line in log_lines(capsys) if "Cannot write events" in line]) <= 1
