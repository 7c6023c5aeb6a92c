import pytest

from tensorpack.callbacks import (
    GraphVarParam,
    HumanHyperParamSetter,
    HyperParam,
    HyperParamSetterWithFunc,
    ObjAttrParam,
    ScheduledHyperParamSetter,
    StatMonitorParamSetter,
)
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.collectives import add_up_workers_by
from tests.callbacks.driver import MiniTrainer, a_rate, log_directory, log_lines, when
from tests.contracts.callback import contract_of

TestHumanHyperParamSetter = contract_of(lambda: HumanHyperParamSetter(a_rate()))
TestHyperParamSetterWithFunc = contract_of(
    lambda: HyperParamSetterWithFunc(a_rate(), lambda epoch, old: epoch)
)
TestScheduledHyperParamSetter = contract_of(lambda: ScheduledHyperParamSetter(a_rate(), [(0, 1.0)]))
TestScheduleInTheGraph = contract_of(
    lambda: ScheduledHyperParamSetter("weight", [(0, 1.0), (9, 2.0)], "linear", True)
)
TestStatMonitorParamSetter = contract_of(
    lambda: StatMonitorParamSetter(a_rate(), "cost", lambda old: old, 0.1, 3)
)


class Thing:
    exploration = None


def param(thing=None):
    return ObjAttrParam(Thing() if thing is None else thing, "exploration")


def run(make, initial="initial", max_epoch=6, before=(), **options):
    """The attribute in each epoch."""
    thing, values = Thing(), []
    thing.exploration = initial
    setter = make(param(thing))
    reading = when(before_epoch=lambda _: values.append(thing.exploration))
    with tf.Graph().as_default():
        MiniTrainer([*before, setter, reading], max_epoch=max_epoch, **options).train()
    return values


# in epoch                              1     2     3     4     5     6
@pytest.mark.parametrize(
    "schedule, interp, values",
    [
        ([(0, 1.0), (3, 0.25)], None, [1.0, 1.0, 1.0, 0.25, 0.25, 0.25]),
        ([(2, 0.5), (4, 0.0)], None, ["initial", "initial", 0.5, 0.5, 0.0, 0.0]),
        (
            iter([("4", "0"), (2.0, 0.5), (2, "0.5")]),
            None,
            ["initial", "initial", 0.5, 0.5, 0.0, 0.0],
        ),
        ([], None, ["initial"] * 6),
        ([(0, 1.0), (4, 0.0)], "linear", [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]),
        ([(1, 0.0), (3, 2.0), (4, 4.0)], "linear", ["initial", 0.0, 1.0, 2.0, 4.0, 4.0]),
    ],
)
def test_a_value_takes_effect_after_its_epoch(schedule, interp, values):
    assert run(lambda it: ScheduledHyperParamSetter(it, schedule, interp)) == values


# in the first epoch of a run that begins with epoch 4, where epoch 3 has ended
@pytest.mark.parametrize(
    "schedule, interp, value",
    [
        ([(0, 1.0), (2, 0.5)], None, 0.5),
        ([(0, 0.0), (4, 1.0)], None, 0.0),
        ([(5, 1.0)], None, "initial"),
        ([(1, 0.0), (5, 4.0)], "linear", 2.0),
        ([(4, 1.0), (5, 0.25)], "linear", "initial"),
    ],
)
def test_a_run_that_starts_later_has_the_value_in_force(schedule, interp, value):
    def make(it):
        return ScheduledHyperParamSetter(it, schedule, interp)

    assert run(make, starting_epoch=4, max_epoch=4, init_step=6) == [value]


def test_it_may_leave_the_value_at_the_beginning():
    def make(it):
        return ScheduledHyperParamSetter(it, [(2, 0.5), (4, 0.0)], set_at_beginning=False)

    assert run(make, starting_epoch=4, max_epoch=6, init_step=6) == ["initial", 0.0, 0.0]


# as in 2017; the same value once, and in a schedule of steps one value in an epoch
@pytest.mark.parametrize(
    "schedule, step_based, changes",
    [
        ([(0, 1), (10, 0.1)], False, ["epoch 1: 1.00", "epoch 2: 0.91", "epoch 3: 0.82"]),
        ([(0, 0.0), (4, 0.0)], False, ["epoch 1: 0.00"]),
        (
            [(0, 0.0), (6, 6.0)],
            True,
            ["global_step 0: 0.00", "global_step 1: 1.00", "global_step 3: 3.00"],
        ),
    ],
)
def test_changes_are_logged(schedule, step_based, changes, capsys):
    run(lambda it: ScheduledHyperParamSetter(it, schedule, "linear", step_based), max_epoch=2)
    lines = [change.replace(": ", " will change to ") for change in changes]
    assert log_lines(capsys) == [f"exploration at {line}000000" for line in lines]


def test_a_schedule_of_steps():
    # step   1    2  | 3    4  | 5    6       and before step 1
    # after  1.0     | 0.5  0  |
    thing, values = Thing(), []
    points = [(1, 1.0), (3, 0.5), (4, 0.0)]
    setter = ScheduledHyperParamSetter(param(thing), points, step_based=True)
    reading = when(before_run=lambda _: values.append(thing.exploration))
    MiniTrainer([setter, reading], max_epoch=3).train()
    assert values == [None, 1.0, 1.0, 0.5, 0.0, 0.0]


@pytest.mark.parametrize(
    "schedule, interp, said",
    [
        ([(1, 0.1), ("1", 0.2)], None, "A schedule"),
        ([(-1, 0.1)], None, "A schedule"),
        ([(1.5, 0.1)], None, "A schedule"),
        ([(0, 1)], "cubic", "'cubic'"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(schedule, interp, said):
    with pytest.raises(ValueError, match=said):
        ScheduledHyperParamSetter(param(), schedule, interp)


def test_a_function_sets_the_value():
    def make(it):
        return HyperParamSetterWithFunc(it, lambda epoch, old: old + epoch)

    assert run(make, initial=10, max_epoch=4) == [10, 11, 13, 16]


def test_a_parameter_may_have_several_numbers(capsys):
    with tf.Graph().as_default():
        tf.get_variable("scales", initializer=[1.0, 4.0], trainable=False)
        it = GraphVarParam("scales", [2])
        setter = HyperParamSetterWithFunc(it, lambda epoch, old: old * 0.5 if epoch < 3 else old)
        values = []
        reading = when(before_epoch=lambda _: values.append(it.get_value().tolist()))
        MiniTrainer([setter, reading], max_epoch=4).train()
    assert values == [[0.5, 2.0], [0.25, 1.0], [0.125, 0.5], [0.125, 0.5]]
    changes = [line for line in log_lines(capsys) if "will change to" in line]
    assert changes[-1] == "scales at epoch 3 will change to [0.125 0.5  ]" and len(changes) == 3


def human(directory, texts, capsys):
    """The attribute in each epoch; `texts` are what the file has in it before each of them."""

    def edit(callback):
        index = callback.epoch_num
        if index < len(texts) and texts[index] is not None:
            (directory / "hyper.txt").write_text(texts[index], encoding="utf-8")

    editing = when(before_train=edit, after_epoch=edit)
    with log_directory(directory):
        values = run(HumanHyperParamSetter, max_epoch=len(texts), before=[editing])
    return values, log_lines(capsys)


def test_a_person_sets_the_value(tmp_path, capsys):
    values, lines = human(
        tmp_path,
        [None, "\ufeffexploration:0.5\nrate:0.1\n", None, "# try: 1\n\nrate:\nexploration: 0\n"],
        capsys,
    )
    assert values == ["initial", 0.5, 0.5, 0.0]
    assert lines == [
        f"Use {tmp_path / 'hyper.txt'} to control hyperparam exploration.",
        "exploration at epoch 2 will change to 0.50000000",
        "exploration at epoch 4 will change to 0.00000000",
    ]


@pytest.mark.parametrize(
    "text", ["", "learning_rate:0.1", "exploration 0.1", "exploration:x", "exploration:nan"]
)
def test_a_file_without_the_value_is_a_warning(tmp_path, capsys, text):
    values, lines = human(tmp_path, [text], capsys)
    assert values == ["initial"]
    # once before the training, once after the epoch
    assert lines[1:] == [f"Cannot find exploration in {tmp_path / 'hyper.txt'}"] * 2


def test_in_a_group_of_workers_nobody_sets_a_variable_by_hand_or_by_a_scalar(tmp_path, capsys):
    def train(make, shared=True):
        with tf.Graph().as_default():
            rate, values = tf.get_variable("rate", initializer=8.0, trainable=False), []
            if shared:
                add_up_workers_by(lambda tensor: tensor)
            reading = when(before_epoch=lambda _: values.append(rate.eval()))
            MiniTrainer([make(), reading], max_epoch=2).train()
        return values

    (tmp_path / "hyper.txt").write_text("rate:2\n")
    with log_directory(tmp_path):
        assert train(lambda: HumanHyperParamSetter("rate"), shared=False) == [2.0, 2.0]
        assert train(lambda: HumanHyperParamSetter("rate")) == [8.0, 8.0]
    assert "rate is not set to 2. Other workers" in "".join(log_lines(capsys))
    with pytest.raises(ValueError, match="cannot set rate: workers that train together"):
        train(lambda: StatMonitorParamSetter("rate", "cost", lambda old: old / 2, 0.1, 3))


def stat(costs, reverse=False):
    """The attribute in each epoch, when the cost at the end of each epoch is that of `costs`."""

    def put(callback):
        cost = costs[callback.epoch_num - 1]
        if cost is not None:
            callback.trainer.monitors.put_scalar("cost", cost)

    def make(it):
        return StatMonitorParamSetter(it, "cost", lambda old: old / 2, 0.1, 3, reverse)

    return run(make, 8.0, len(costs), [when(trigger_epoch=put)])


# in the epoch after the one with that cost; the first is before any
@pytest.mark.parametrize(
    "costs, reverse, values",
    [
        ([5, 5, 5, 5, 5, 5, 5], False, [8, 8, 8, 4, 4, 4, 2]),
        ([5, 4, 3, 2, 1, 0, 0], False, [8] * 7),
        ([5, 4.95, 4.92, 1, 1], False, [8, 8, 8, 4, 4]),
        ([1, 2, 3, 4, 5], True, [8] * 5),
        ([1, 2, 3, 4, 5], False, [8, 8, 8, 4, 4]),
        ([5, None, 5, None, 5, 5], False, [8, 8, 8, 8, 8, 4]),
    ],
)
def test_a_value_that_does_not_improve_changes_it(costs, reverse, values):
    assert stat(costs, reverse) == values


def test_everything_is_better_than_nan():
    nan = float("nan")
    assert stat([nan, 0.9, 0.8, 0.6]) == stat([9.0, 0.9, 0.8, 0.6])
    assert stat([nan, nan, nan, nan]) == stat([1.0, 1.0, 1.0, 1.0])


def test_no_value_is_a_warning(capsys):
    stat([None, 5, None])
    (said,) = log_lines(capsys)
    assert said.startswith("StatMonitorParamSetter does nothing yet. The scalar 'cost' has no ")
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="did nothing in this run"):
        stat([None, None])


def history(initial, *callbacks, **options):
    """The values of the monitors' `rate`, a float32 variable, with its steps, of three epochs."""
    initializer = tf.constant_initializer(initial)
    tf.get_variable("rate", [], tf.float32, initializer, trainable=False)
    return MiniTrainer(callbacks, max_epoch=3, **options).train().monitors.get_history("rate")


def test_the_value_that_held_in_an_epoch_is_put_into_the_monitors():
    setter = ScheduledHyperParamSetter("rate", [(0, 1.0), (2, 0.5)])
    human = ObjAttrParam(Thing(), "exploration")  # None, which is not a number
    nothing = HyperParamSetterWithFunc(human, lambda epoch, value: None)
    assert history(2.0, setter, nothing) == [(2, 1.0), (4, 1.0), (6, 0.5)]


def test_a_value_that_the_graph_puts_is_not_put_again():
    putting = when(trigger_step=lambda cb: cb.trainer.monitors.put_scalar("rate", 7))
    setter = ScheduledHyperParamSetter("rate", [(2, 0.5)])
    assert history(2.0, putting, setter) == [(step, 7.0) for step in range(1, 7)]


class OnlySet(HyperParam):
    readable_name = "rate"

    def set_value(self, v):
        pass


def test_a_parameter_that_cannot_be_read_is_not_put(capsys):
    setter = ScheduledHyperParamSetter(OnlySet(), [(0, 1.0), (4, 1.0)], "linear")
    assert history(2.0, setter) == []
    said = [line for line in log_lines(capsys) if "will change" in line]
    assert said == ["rate at epoch 1 will change to 1.00000000"]
