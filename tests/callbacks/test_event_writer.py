import resource

import numpy as np
import pytest

from tensorpack.callbacks import CallbackFactory, TFEventWriter
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.train import SimpleTrainer
from tests.callbacks.driver import (
    MiniTrainer,
    log_directory,
    log_lines,
    resume_writer,
    shown_events,
    shown_scalars,
    when,
)
from tests.contracts.callback import contract_of
from tests.helpers import TinyModel, config

TestTFEventWriter = contract_of(TFEventWriter)


def putting(action=lambda callback: None):
    def put(callback):
        callback.trainer.monitors.put_scalar("epoch", callback.epoch_num)
        action(callback)

    return when(trigger_epoch=put)


def run(directory, action=lambda callback: None, max_epoch=2, init_step=0, **options):
    writer = TFEventWriter(str(directory), **options)
    callbacks = [putting(action)]
    return MiniTrainer(callbacks, [writer], max_epoch=max_epoch, init_step=init_step).train()


def test_the_version_the_graph_and_all_that_is_put_are_in_a_file_after_each_epoch(tmp_path):
    seen = []

    def put(callback):
        seen.append(shown_scalars(tmp_path))
        callback.trainer.monitors.put_image("frame", np.zeros([2, 3]))
        callback.trainer.monitors.put_event(tf.Event(tagged_run_metadata={"tag": "trace"}))

    trainer = run(tmp_path, put)
    scalars = [(2, "epoch", 1.0), (2, "frame", 0.0), (4, "epoch", 2.0), (4, "frame", 0.0)]
    assert seen == [[], scalars[:2]] and shown_scalars(tmp_path) == scalars
    version, graph, _, image, event, *_ = events = shown_events(tmp_path)
    assert version.file_version == "brain.Event:2"
    assert tf.GraphDef.FromString(graph.graph_def) == trainer.graph.as_graph_def()
    assert (image.summary.value[0].image.height, image.summary.value[0].image.width) == (2, 3)
    assert (event.step, event.tagged_run_metadata.tag) == (2, "trace")
    assert all(event.wall_time > 1e9 for event in events)
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("events.out.tfevents.")


def test_what_a_run_has_put_before_it_failed_is_in_the_file(tmp_path):
    def fail(callback):
        callback.trainer.monitors.put_scalar("last", 7.0)
        raise ValueError("on purpose")

    writer = TFEventWriter(str(tmp_path))
    with pytest.raises(ValueError, match="on purpose"):
        MiniTrainer([when(trigger_step=fail)], [writer]).train()
    assert shown_scalars(tmp_path) == [(1, "last", 7.0)]


@pytest.mark.parametrize("split_files", [False, True])
def test_a_long_queue_is_written_early(split_files, tmp_path):
    counts = []

    def put_many(callback):
        for i in range(5):
            callback.trainer.monitors.put_scalar("many", i)
            counts.append(len(shown_scalars(tmp_path)))

    run(tmp_path, put_many, max_epoch=2, max_queue=2, split_files=split_files)
    assert counts == [0, 3, 3, 3, 6] + [6, 9, 9, 9, 12]
    assert len(list(tmp_path.iterdir())) == 1 + split_files


@pytest.mark.parametrize("resume", ["never", "auto"])
def test_what_is_put_before_the_training_stays_in_the_file_with_the_graph(tmp_path, resume):
    def put(callback):
        for i in range(20):  # more than wait in the buffer
            callback.trainer.monitors.put_scalar(str(i), i)

    with tf.summary.FileWriter(str(tmp_path)) as other:  # of the script itself
        other.add_summary(tf.Summary(value=[tf.Summary.Value(tag="text", simple_value=1)]), 0)
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
    before = [(0, "text", 1.0)] + [(0, str(i), i) for i in range(20)]
    assert shown_scalars(tmp_path)[:21] == before
    assert len([event for event in shown_events(tmp_path) if event.graph_def]) == 1


def test_without_a_log_directory_it_does_nothing(capsys):
    MiniTrainer([putting()], [TFEventWriter()]).train()
    assert log_lines(capsys) == ["No events are written: there is no log directory to put them in."]


EPOCHS = [(2 * epoch, "epoch", float(epoch)) for epoch in range(1, 5)]


def states_of_a_run(directory, max_epoch=4, **options):
    """The states of a writer at the ends of the epochs, before its own turn."""
    states = []

    def take(callback):
        states.append(callback.trainer.callbacks.cbs[-2].state_dict())
        callback.trainer.monitors.put_scalar("late", 0)

    with tf.Graph().as_default():
        run(directory, take, max_epoch, **options)
    return states


def resume(directory, state, max_epoch=3):
    resume_writer(TFEventWriter(str(directory)), state, putting(), max_epoch=max_epoch)


@pytest.mark.parametrize("split_files", [False, True])
def test_after_a_resume_what_came_after_the_state_is_not_shown(tmp_path, split_files):
    states = states_of_a_run(tmp_path, split_files=split_files)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    resume(tmp_path, states[1])
    late = [(2, "late", 0)]  # that of step 4 came after the state
    assert shown_scalars(tmp_path) == [*EPOCHS[:1], *late, *EPOCHS[1:3]]
    assert len([event for event in shown_events(tmp_path) if event.graph_def]) == 1
    assert {path: path.read_bytes() for path in before} == before
    resume(tmp_path, states[1], max_epoch=4)  # the one that was resumed was killed, too
    assert shown_scalars(tmp_path) == [*EPOCHS[:1], *late, *EPOCHS[1:]]


def test_a_late_value_is_in_the_file_of_its_step(tmp_path):
    writer, states = TFEventWriter(str(tmp_path), split_files=True), []

    def put(callback):
        callback.trainer.monitors.put_scalar("late", callback.epoch_num)
        states.append(writer.state_dict())

    with tf.Graph().as_default():
        MiniTrainer([putting(), when(before_epoch=put)], [writer], max_epoch=3).train()
    resume(tmp_path, states[2])
    late = [(0, "late", 1.0), (2, "late", 2.0), (4, "late", 3.0)]
    assert sorted(shown_scalars(tmp_path)) == sorted(EPOCHS[:3] + late)


def test_tensorboard_shows_each_step_once(tmp_path):
    backend = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    values = [
        tf.Summary.Value(tag="s", simple_value=1),
        tf.Summary.Value(tag="h", histo={"num": 1, "bucket": [1], "bucket_limit": [1]}),
        tf.Summary.Value(tag="i", image={"height": 1, "width": 1, "colorspace": 1}),
    ]
    states = []

    def put(callback):
        callback.trainer.monitors.put_summary(tf.Summary(value=values))
        states.append(callback.trainer.callbacks.cbs[-2].state_dict())
        callback.trainer.monitors.put_summary(tf.Summary(value=values[:1]))

    with tf.Graph().as_default():
        run(tmp_path, put, max_epoch=4)
    with open(str(next(tmp_path.iterdir())), "ab") as file:
        file.write(b"half")  # where it was killed
    resume_writer(TFEventWriter(str(tmp_path)), states[1], when(trigger_epoch=put))
    every = {"scalars": 0, "histograms": 0, "images": 0, "tensors": 0}
    shown = backend.EventAccumulator(str(tmp_path), every).Reload()
    assert [event.step for event in shown.Scalars("s")] == [2, 2, 4, 6, 6]
    assert [event.step for event in shown.Histograms("h")] == [2, 4, 6]
    assert [event.step for event in shown.Images("i")] == [2, 4, 6]


def test_a_state_that_has_a_place_in_a_file_is_continued(tmp_path):
    """As earlier versions saved it."""
    place = []

    def look(callback):
        callback.trainer.callbacks.cbs[-2].trigger()  # so that all is in the file
        if callback.epoch_num == 2:
            place.extend(tmp_path.iterdir())
            place.append(place[0].stat().st_size)

        callback.trainer.monitors.put_scalar("late", 0)

    run(tmp_path, look, max_epoch=4)
    state = {"id": "1", "files": [place[0].name], "file": place[0].name, "size": place[1]}
    for max_epoch in (3, 4):  # the one that was resumed was killed, too
        resume(tmp_path, state, max_epoch)
        late = [(2, "late", 0)]  # that of step 4 came after the state
        assert shown_scalars(tmp_path) == [*EPOCHS[:1], *late, *EPOCHS[1:max_epoch]]


def test_a_file_that_was_cut_off_before_the_state_is_named(tmp_path, capsys):
    state = states_of_a_run(tmp_path)[1]
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[: state["size"] - 5])
    resume(tmp_path, state)
    assert f"{path} is cut off; events of step 4 may be missing." in log_lines(capsys)
    assert EPOCHS[0] in shown_scalars(tmp_path) and shown_scalars(tmp_path)[-1] == EPOCHS[2]


def test_a_run_that_continues_without_a_state_leaves_out_later_events(tmp_path):
    states_of_a_run(tmp_path)
    run(tmp_path, init_step=4, max_epoch=1)
    steps = [step for step, tag, _ in shown_scalars(tmp_path) if tag == "epoch"]
    assert steps == [2, 4, 6]


def test_a_disk_that_is_full_costs_one_warning_and_the_events_of_the_epoch(tmp_path, capsys):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    image = np.random.RandomState(0).randint(0, 256, [200, 200, 3])

    def fill(callback):
        if callback.epoch_num in (2, 3):
            resource.setrlimit(resource.RLIMIT_FSIZE, (60000, limits[1]))
            callback.trainer.monitors.put_image("frame", image)  # which is larger
            callback.trainer.monitors.put_scalar("lost", 1)
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    try:
        run(tmp_path, fill, max_epoch=4, max_queue=0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert shown_scalars(tmp_path) == EPOCHS
    (line,) = log_lines(capsys)
    assert line.startswith(f"Cannot write events to {tmp_path}, they are lost: ")
