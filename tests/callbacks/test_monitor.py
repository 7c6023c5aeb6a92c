import pickle

import numpy as np
import pytest

from tensorpack.callbacks import JSONWriter, MonitorBase, Monitors, TrainingMonitor
from tensorpack.callbacks._images import image_summary
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer
from tests.contracts.callback import contract_of

TestMonitorBase = contract_of(MonitorBase)
TestMonitors = contract_of(lambda: Monitors([]))


class SpyMonitor(MonitorBase):
    def __init__(self):
        self.tape = []

    def process_scalar(self, name, val):
        self.tape.append(("scalar", name, val))

    def process_image(self, name, val):
        self.tape.append(("image", name, val.shape))

    def process_summary(self, summary):
        self.tape.append(("summary", [value.tag for value in summary.value]))

    def process_event(self, evt):
        self.tape.append(("event", evt.step))


@pytest.fixture
def spy():
    return SpyMonitor()


@pytest.fixture
def monitors(spy):
    trainer = MiniTrainer(monitors=[spy])
    trainer.global_step = 7
    trainer.callbacks.setup_graph(trainer)
    yield trainer.monitors
    assert trainer.global_step  # the callbacks hold the trainer weakly


def scalar_summary(**values):
    return tf.Summary(
        value=[tf.Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
    )


@pytest.mark.parametrize("value", [3, True, np.int64(3), np.float32(3), np.array([3]), np.nan])
def test_numbers_of_all_kinds_are_scalars(monitors, spy, value):
    monitors.put_scalar("value", value)
    assert spy.tape[0] == ("summary", ["value"]) and type(spy.tape[1][2]) is float
    np.testing.assert_equal(monitors.get_latest("value"), float(np.asarray(value).item()))


@pytest.mark.parametrize("value", ["3", None, [1, 2], np.zeros(0)])
def test_other_things_are_not(monitors, value):
    with pytest.raises(TypeError, match="scalar 'value' must be one number"):
        monitors.put_scalar("value", value)


def test_a_summary_is_taken_apart(monitors, spy):
    histogram = tf.Summary.Value(tag="weights", histo=tf.HistogramProto(num=1))
    summary = scalar_summary(cost=0.5)
    summary.value.extend([histogram])
    monitors.put_summary(summary.SerializeToString())
    assert spy.tape == [("summary", ["cost", "weights"]), ("scalar", "cost", 0.5)]


# What is told to a monitor of a value with a certain tag.
@pytest.mark.parametrize(
    "tag, told",
    [
        ("cost", "cost"),
        ("cost-summary", "cost"),
        ("tower0/cost", "cost"),
        ("tower12/conv0/W-summary", "conv0/W"),
        ("towerp0/cost", "cost"),
        ("tower/cost", "tower/cost"),
        ("towers0/cost", "towers0/cost"),
        ("tower0", "tower0"),
        ("param-summary/conv0/W-rms", "param-summary/conv0/W-rms"),
        ("-summary", "-summary"),
    ],
)
def test_tags_are_cleaned_before_anybody_sees_them(monitors, spy, tag, told):
    monitors.put_summary(scalar_summary(**{tag: 1.0}))
    assert spy.tape == [("summary", [told]), ("scalar", told, 1.0)]
    assert monitors.get_latest(told) == 1.0


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 3), (1, 4, 5, 1), (2, 4, 5, 4)])
def test_an_image_comes_as_an_array_and_in_a_summary(monitors, spy, shape):
    monitors.put_image("frame", np.zeros(shape, np.float32))
    tags = ["frame"] if len(shape) < 4 or shape[0] == 1 else ["frame/0", "frame/1"]
    count, channels = (len(tags), shape[-1] if len(shape) > 2 else 1)
    assert spy.tape == [("image", "frame", (count, 4, 5, channels)), ("summary", tags)]


def test_an_image_of_another_shape_is_refused(monitors):
    with pytest.raises(ValueError, match=r"got \[4, 5, 2\]"):
        monitors.put_image("frame", np.zeros([4, 5, 2]))


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_images_are_pngs(channels):
    images = np.random.RandomState(0).randint(0, 256, [2, 6, 5, channels]).astype(np.uint8)
    pngs = [each.image.encoded_image_string for each in image_summary("frames", images).value]
    with tf.Session() as sess:
        assert np.array_equal(sess.run([tf.image.decode_png(each) for each in pngs]), images)


def test_an_event_gets_its_step_and_time(monitors, spy):
    event = tf.Event()
    monitors.put_event(event)
    assert spy.tape == [("event", 7)]
    assert event.wall_time > 1e9


def test_the_history_has_steps_and_values(monitors):
    monitors.put_scalar("cost", 2)
    monitors.trainer.global_step = 9
    monitors.put_scalar("cost", 1)
    assert monitors.get_history("cost") == [(7, 2.0), (9, 1.0)]
    assert monitors.get_history("cost")[0].global_step == 7
    assert monitors.get_latest("cost") == 1.0 == monitors.get_history("cost")[-1]
    assert monitors.latest_record("cost").global_step == 9
    assert str(monitors.get_latest("cost")) == "1.0"


def test_an_unknown_name_has_no_latest_value_and_stays_unknown(monitors, capsys):
    monitors.put_scalar("cost", 2)
    for _ in range(2):
        with pytest.raises(KeyError, match="'score' has no value yet. Those that have: cost"):
            monitors.get_latest("score")
        assert monitors.get_history("costs") == []
    text = "get_history() is empty. The scalar 'costs' has no value yet. Did you mean 'cost'?"
    assert capsys.readouterr().out.count(text) == 1


def test_a_history_is_one_of_numbers_as_in_2017(monitors):
    for value in 3.0, 1.0, 2.0:
        monitors.put_scalar("cost", value)
        monitors.trainer.global_step += 1
    history = monitors.get_history("cost")
    assert (min(history), max(history), sum(history)) == (1.0, 3.0, 6.0)
    assert history[-1] > history[-2] and history == [3.0, 1.0, 2.0]
    assert np.mean(history[-2:]) == 1.5
    np.testing.assert_array_equal(np.array(history), [3.0, 1.0, 2.0])


def test_a_history_is_one_of_tuples_as_later(monitors):
    monitors.put_scalar("cost", 2)
    (record,) = monitors.get_history("cost")
    step, value = record
    assert (step, value) == (record[0], record[1]) == tuple(record) == (7, 2.0)
    assert record == (7, 2.0) and not record != (7, 2.0) and record != (8, 2.0)
    with pytest.raises(TypeError, match="unhashable"):  # no hash is that of 2.0 and of (7, 2.0)
        hash(record)
    assert dict([record]) == {7: 2.0} and type(record.value) is float
    assert repr(pickle.loads(pickle.dumps(record))) == "ScalarRecord(global_step=7, value=2.0)"


def test_a_monitor_of_ours_has_the_methods_of_2017():
    class Twice(JSONWriter):
        def put_scalar(self, name, val):
            super().put_scalar(name, 2 * val)

    writer = Twice()
    writer.process_scalar("cost", 2)
    writer.put_scalar("score", 1)
    assert writer._values == {"cost": 4, "score": 2}


def test_the_spelling_of_2017():
    class Old(TrainingMonitor):
        def __init__(self):
            self.tape = []

        def put(self, name, val):
            self.tape.append((name, val))

        def put_summary(self, summary):
            self.tape.append(summary.value[0].tag)

        def put_event(self, evt):
            self.tape.append("event")

        def put_image(self, name, val):
            self.tape.append((name, val.shape))

    old = Old()
    trainer = MiniTrainer(monitors=[old])
    trainer.callbacks.setup_graph(trainer)
    trainer.monitors.put_scalar("cost", 1)
    trainer.monitors.put_event(tf.Event())
    trainer.monitors.put_image("frame", np.zeros([2, 2]))
    assert old.tape == ["cost", ("cost", 1.0), "event", ("frame", (1, 2, 2, 1)), "frame"]


def test_monitors_of_the_chief_are_silent_elsewhere(spy):
    trainer = MiniTrainer(monitors=[spy])
    trainer.is_chief = False
    trainer.callbacks.setup_graph(trainer)
    trainer.monitors.put_scalar("cost", 1)
    assert spy.tape == []
    assert trainer.monitors.get_latest("cost") == 1.0


@pytest.mark.parametrize("method", ["put_summary", "put_event"])
def test_wrong_kinds_are_refused(monitors, method):
    with pytest.raises(TypeError, match="must be an? (Summary|Event), got str"):
        getattr(monitors, method)("text")


def test_new_values_follow_a_loaded_history():
    trainer = MiniTrainer(init_step=7)
    trainer.callbacks.setup_graph(trainer)
    values = np.array([0.1, np.nan])
    values.flags.writeable = False
    trainer.monitors.load_state_dict({"cost": {"steps": np.array([3, 5]), "values": values}})
    trainer.monitors.put_scalar("cost", 1)
    history = trainer.monitors.get_history("cost")
    assert [each.global_step for each in history] == [3, 5, 7]
    assert [repr(each.value) for each in history] == ["0.1", "nan", "1.0"]
    assert trainer.monitors.get_latest("cost") == 1.0
