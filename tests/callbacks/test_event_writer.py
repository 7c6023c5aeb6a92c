import os
import resource

import numpy as np
import pytest

from tensorpack.callbacks import CallbackFactory, TFEventWriter
from tensorpack.callbacks.monitors import event_writer
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.train import SimpleTrainer
from tests.callbacks.driver import MiniTrainer, log_directory, log_lines, resume_writer, when
from tests.contracts.callback import contract_of
from tests.helpers import TinyModel, config

TestTFEventWriter = contract_of(TFEventWriter)


def events(directory):
    """All events of a directory, file by file; read record by record, as TensorBoard does."""
    found = []
    names = [name for name in os.listdir(str(directory)) if "tfevents" in name]
    for path in sorted(names):
        for record in tf.io.tf_record_iterator(os.path.join(str(directory), path)):
            found.append(tf.Event.FromString(record))
    return found


def scalars(directory):
    return [
        (event.step, value.tag, value.simple_value)
        for event in events(directory)
        for value in event.summary.value
    ]


def putting(action=lambda callback: None):
    def put(callback):
        callback.trainer.monitors.put_scalar("epoch", callback.epoch_num)
        action(callback)

    return when(trigger_epoch=put)


def run(directory, action=lambda callback: None, max_epoch=2, init_step=0, **options):
    writer = TFEventWriter(str(directory), **options)
    callbacks = [putting(action)]
    return MiniTrainer(callbacks, [writer], max_epoch=max_epoch, init_step=init_step).train()


def test_a_file_has_its_version_the_graph_and_the_scalars(tmp_path):
    trainer = run(tmp_path)
    version, mark, graph = events(tmp_path)[:3]
    assert version.file_version == "brain.Event:2"
    assert mark.session_log.msg.startswith("tensorpack TFEventWriter ")
    assert tf.GraphDef.FromString(graph.graph_def) == trainer.graph.as_graph_def()
    assert scalars(tmp_path) == [(2, "epoch", 1.0), (4, "epoch", 2.0)]
    assert all(event.wall_time > 1e9 for event in events(tmp_path))
    assert len(os.listdir(str(tmp_path))) == 1
    assert os.listdir(str(tmp_path))[0].startswith("events.out.tfevents.")


def test_what_is_written_is_in_the_file_after_each_epoch(tmp_path):
    seen = []
    reading = when(before_epoch=lambda _: seen.append(scalars(tmp_path)))
    MiniTrainer([putting(), reading], [TFEventWriter(str(tmp_path))], max_epoch=2).train()
    assert seen == [[], [(2, "epoch", 1.0)]]


def test_what_a_run_has_put_before_it_failed_is_in_the_file(tmp_path):
    def fail(callback):
        callback.trainer.monitors.put_scalar("last", 7.0)
        raise ValueError("on purpose")

    writer = TFEventWriter(str(tmp_path))
    with pytest.raises(ValueError, match="on purpose"):
        MiniTrainer([when(trigger_step=fail)], [writer]).train()
    assert scalars(tmp_path) == [(1, "last", 7.0)]


@pytest.mark.parametrize("split_files", [False, True])
def test_a_long_queue_is_written_early(split_files, tmp_path):
    counts = []

    def put_many(callback):
        for i in range(5):
            callback.trainer.monitors.put_scalar("many", i)
            counts.append(len(scalars(tmp_path)))

    run(tmp_path, put_many, max_epoch=2, max_queue=2, split_files=split_files)
    assert counts == [0, 3, 3, 3, 6] + [6, 9, 9, 9, 12]


def test_images_and_events_are_written(tmp_path):
    def put(callback):
        callback.trainer.monitors.put_image("frame", np.zeros([2, 3]))
        callback.trainer.monitors.put_event(tf.Event(tagged_run_metadata={"tag": "trace"}))

    run(tmp_path, put, max_epoch=1)
    image, event = events(tmp_path)[-2:]
    assert (image.summary.value[0].image.height, image.summary.value[0].image.width) == (2, 3)
    assert (event.step, event.tagged_run_metadata.tag) == (2, "trace")


@pytest.mark.parametrize("resume", ["never", "auto"])
def test_what_is_put_before_the_training_stays_in_the_file_with_the_graph(tmp_path, resume):
    def put(callback):
        for i in range(20):  # more than wait in the buffer
            callback.trainer.monitors.put_scalar(str(i), i)

    with log_directory(tmp_path):
        SimpleTrainer(
            config(
                [CallbackFactory(before_train=put)],
                monitors=[TFEventWriter()],
                model=TinyModel(),
                dataflow=DataFromList([[[1.0], [2.0]]]),
                resume=resume,
            )
        ).train()
    assert scalars(tmp_path) == [(0, str(i), i) for i in range(20)] + scalars(tmp_path)[20:]
    assert len([event for event in events(tmp_path) if event.graph_def]) == 1
    assert [name for name in os.listdir(str(tmp_path)) if "dropped" in name] == []


def test_a_run_that_continues_purges_later_events(tmp_path):
    run(tmp_path, init_step=10, max_epoch=1)
    start = [event for event in events(tmp_path) if event.session_log.status]
    assert [(event.step, event.session_log.status) for event in start] == [
        (11, tf.SessionLog.START)
    ]


def test_without_a_log_directory_it_does_nothing(capsys):
    MiniTrainer([putting()], [TFEventWriter()]).train()
    assert log_lines(capsys) == ["No events are written: there is no log directory to put them in."]


def test_a_full_disk_costs_one_warning(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(event_writer, "new_file", lambda _: "/dev/full")
    run(tmp_path, max_epoch=3)
    lines = log_lines(capsys)
    assert len(lines) == 1
    assert lines[0].startswith(f"Cannot write events to {tmp_path}, they are lost: ")


def resume(directory, state, max_epoch=3):
    resume_writer(TFEventWriter(str(directory)), state, putting(), max_epoch=max_epoch)


def states_of_a_run(directory, max_epoch=4, **options):
    """The states of a writer at the ends of the epochs, before its own turn."""
    states = []

    def take(callback):
        states.append(callback.trainer.callbacks.cbs[-2].state_dict())

    with tf.Graph().as_default():
        run(directory, take, max_epoch, **options)
    return states


EPOCHS = [(2 * epoch, "epoch", float(epoch)) for epoch in range(1, 5)]


def dropped(directory):
    return sorted(name for name in os.listdir(str(directory)) if name.startswith("dropped-events"))


def test_a_resumed_run_takes_out_what_came_after_its_state(tmp_path, capsys):
    states = states_of_a_run(tmp_path)
    resume(tmp_path, states[1])
    assert scalars(tmp_path) == EPOCHS[:3]
    assert len([event for event in events(tmp_path) if event.graph_def]) == 1
    assert not [event for event in events(tmp_path) if event.session_log.status]  # no purge
    (name,) = dropped(tmp_path)
    assert "tfevents" not in name
    (tmp_path / name).rename(tmp_path / "was.tfevents")
    for other in os.listdir(str(tmp_path)):
        if other.startswith("events."):
            (tmp_path / other).unlink()
    assert events(tmp_path)[0].file_version == "brain.Event:2"
    assert scalars(tmp_path) == EPOCHS[2:]
    assert log_lines(capsys)[-1] == (
        f"Events written after the state of this run were moved to {tmp_path / name}."
    )


def test_a_state_of_the_end_takes_nothing_out(tmp_path):
    writer = run(tmp_path).callbacks.cbs[-2]
    (path,) = tmp_path.iterdir()
    before = path.read_bytes()
    resume(tmp_path, writer.state_dict())
    assert path.read_bytes() == before
    assert dropped(tmp_path) == []
    assert scalars(tmp_path) == EPOCHS[:3]


def test_files_of_others_are_left_alone(tmp_path):
    states = states_of_a_run(tmp_path, split_files=True)
    states_of_a_run(tmp_path, 1)  # of another writer, which is at work in the same directory
    (tmp_path / "events.out.tfevents.1234567890.foreign").write_bytes(b"\xff" * 99)
    (tmp_path / "events.out.tfevents.empty").write_bytes(b"")
    (tmp_path / "events.out.tfevents.folder").mkdir()
    before = set(os.listdir(str(tmp_path)))
    resume(tmp_path, states[1], max_epoch=2)
    gone = before - set(os.listdir(str(tmp_path)))
    assert len(gone) == len(dropped(tmp_path)) == 2  # those of epochs 3 and 4
    assert all(name not in states[1]["files"] for name in gone)


def test_files_that_are_gone_are_missed_in_a_warning(tmp_path, capsys):
    state = states_of_a_run(tmp_path)[1]
    for name in os.listdir(str(tmp_path)):
        (tmp_path / name).unlink()
    resume(tmp_path, state)
    assert scalars(tmp_path) == EPOCHS[2:3]
    assert len([event for event in events(tmp_path) if event.graph_def]) == 1
    assert log_lines(capsys)[-1] == f"1 event files of the earlier run are not in {tmp_path}."


def test_a_disk_that_fails_when_a_run_is_resumed_is_tried_again(tmp_path, monkeypatch, capsys):
    state = states_of_a_run(tmp_path)[0]
    failures, cut_file = [1], event_writer.cut_file

    def cut_later(path, size):
        if failures:
            failures.pop()
            raise OSError("EIO")
        return cut_file(path, size)

    monkeypatch.setattr(event_writer, "cut_file", cut_later)
    resume(tmp_path, state, max_epoch=4)
    assert scalars(tmp_path) == [EPOCHS[0], EPOCHS[3]]
    assert len([line for line in log_lines(capsys) if "Cannot write events" in line]) == 1


def test_half_a_record_is_taken_back_when_the_disk_is_full(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    image = np.random.RandomState(0).randint(0, 256, [200, 200, 3])

    def fill(callback):
        if callback.epoch_num == 2:
            size = sum(os.path.getsize(str(path)) for path in tmp_path.iterdir())
            assert size < 60000
            resource.setrlimit(resource.RLIMIT_FSIZE, (60000, limits[1]))
            callback.trainer.monitors.put_image("frame", image)  # which is larger
            callback.trainer.monitors.put_scalar("lost", 1)
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    try:
        run(tmp_path, fill, max_epoch=3, max_queue=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert scalars(tmp_path) == [*EPOCHS[:2], EPOCHS[2]]
    assert len(os.listdir(str(tmp_path))) == 2
