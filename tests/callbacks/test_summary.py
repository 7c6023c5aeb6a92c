import numpy as np
import pytest

from tensorpack.callbacks import MergeAllSummaries, MovingAverageSummary, SimpleMovingAverage
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.summary import create_scalar_summary
from tests.callbacks.driver import MiniTrainer, log_lines, when
from tests.contracts.callback import contract_of

TestMergeAllSummaries = contract_of(MergeAllSummaries, name="MergeAllSummaries")
TestMergeAllSummariesInARunOfItsOwn = contract_of(
    lambda: MergeAllSummaries(period=1, run_alone=True), name="MergeAllSummaries"
)
TestMovingAverageSummary = contract_of(MovingAverageSummary)
TestSimpleMovingAverage = contract_of(lambda: SimpleMovingAverage(["cost"], 2))


def counter():
    return tf.get_variable("counter", [], tf.float32, tf.zeros_initializer(), trainable=False)


def value_after(trainer, variable):
    with trainer.session() as sess:
        trainer.callbacks.before_train()
        trainer.run_epoch(1)
        return sess.run(variable)


def test_averages_are_kept_with_each_step(capsys):
    variable = counter()
    tf.add_to_collection("MOVING_SUMMARY_OPS", tf.assign_add(variable, 1.0).op)
    tf.add_to_collection("MOVING_SUMMARY_OPS", tf.no_op())
    trainer = MiniTrainer([MovingAverageSummary()], steps_per_epoch=3)
    assert value_after(trainer, variable) == 3
    assert log_lines(capsys) == ["Maintain moving average summary of 2 tensors."]


class TwoRuns(MiniTrainer):
    def run_step(self):
        self.hooked_sess.run(self.train_op)
        self.hooked_sess.run([])


def test_averages_are_kept_with_one_of_several_runs():
    variable, train_op = counter(), tf.no_op()
    tf.add_to_collection("other", tf.assign_add(variable, 1.0).op)
    callback = MovingAverageSummary("other", train_op=train_op)
    assert value_after(TwoRuns([callback], train_op=train_op, steps_per_epoch=3), variable) == 3


def test_a_tag_may_be_given_twice():
    for value in (1.0, 2.0):
        create_scalar_summary("twice", value)
    trainer = MiniTrainer([MergeAllSummaries(run_alone=True)])
    trainer.train()
    assert trainer.monitors.get_latest("twice") == 2


def summarized(*args, runs=None, **kwargs):
    """The steps at which a summary arrives in two epochs of three steps, and the values."""
    variable = counter()
    tf.summary.scalar("count", variable)
    train_op = tf.no_op() if runs is None else runs(variable)
    trainer = MiniTrainer(
        [MergeAllSummaries(*args, **kwargs)], train_op=train_op, steps_per_epoch=3, max_epoch=2
    ).train()
    return trainer.monitors.get_history("count")


# steps              1  2  3 | 4  5  6 |
@pytest.mark.parametrize(
    "options, steps",
    [
        ({}, [3, 6]),
        ({"period": 2}, [2, 3, 5, 6]),
        ({"period": 3}, [3, 6]),
        ({"period": 1}, [1, 2, 3, 4, 5, 6]),
        ({"run_alone": True}, [3, 6]),
        ({"run_alone": True, "period": 2}, [2, 3, 5, 6]),
        ({"key": None}, [3, 6]),
    ],
)
def test_summaries_come_with_the_last_step_of_an_epoch(options, steps):
    assert [step for step, _ in summarized(**options)] == steps


def test_run_alone_sees_the_state_after_the_step():
    history = summarized(run_alone=True, runs=lambda variable: tf.assign_add(variable, 1.0).op)
    assert [value for _, value in history] == [3.0, 6.0]


def test_a_step_of_several_runs_gives_one_summary():
    tf.summary.scalar("one", 1.0)
    trainer = TwoRuns([MergeAllSummaries()]).train()
    assert trainer.monitors.get_history("one") == [(2, 1.0)]


def test_summaries_that_a_later_callback_adds_are_seen():
    adding = when(setup_graph=lambda _: tf.summary.scalar("late", 1.0))
    trainer = MiniTrainer([MergeAllSummaries(), adding]).train()
    assert trainer.monitors.get_latest("Callback/late") == 1.0


def test_the_summaries_of_another_collection():
    tf.summary.scalar("mine", 1.0, collections=["mine"])
    tf.summary.scalar("other", 1.0)
    trainer = MiniTrainer([MergeAllSummaries(key="mine")]).train()
    assert trainer.monitors.get_history("mine") == [(2, 1.0)]
    with pytest.raises(KeyError):
        trainer.monitors.get_latest("other")


@pytest.mark.parametrize("period", [0, 1])
@pytest.mark.parametrize("use_resource", [True, False])
def test_summaries_of_parameters_have_the_values_after_the_update(use_resource, period):
    zeros = tf.zeros_initializer()
    weight = tf.get_variable("weight", [], initializer=zeros, use_resource=use_resource)
    tf.summary.scalar("plain", weight)
    tf.summary.scalar("twice", 2 * weight)
    gradient = tf.constant(-1.0)
    train_op = tf.train.GradientDescentOptimizer(1.0).apply_gradients([(gradient, weight)])
    trainer = MiniTrainer(
        [MergeAllSummaries(period)], train_op=train_op, steps_per_epoch=2, max_epoch=2
    ).train()
    steps = [2, 4] if period == 0 else [1, 2, 3, 4]
    assert trainer.monitors.get_history("plain") == [(step, float(step)) for step in steps]
    assert trainer.monitors.get_history("twice") == [(step, 2.0 * step) for step in steps]


def test_what_has_an_effect_or_takes_data_is_computed_along_with_the_step():
    zeros = tf.zeros_initializer()
    weight, state = tf.get_variable("weight", [], initializer=zeros), counter()
    runs = tf.get_variable("runs", [], initializer=zeros, trainable=True, use_resource=False)
    tf.summary.scalar("changed", tf.assign_add(runs, 1.0))
    tf.summary.scalar("drawn", weight + tf.random.uniform([]))
    with tf.control_dependencies([state.assign_add(1.0)]):
        tf.summary.scalar("behind", tf.identity(weight))
    unseen = []
    trainer = MiniTrainer([MergeAllSummaries()], train_op=tf.no_op())
    with trainer.session() as sess:
        trainer.hooked_sess.run_unseen = unseen.append
        trainer.callbacks.before_train()
        trainer.run_epoch(1)
        assert sess.run([runs, state]) == [1.0, 1.0]
    assert trainer.monitors.get_latest("behind") == 0 < trainer.monitors.get_latest("drawn")
    assert unseen == []


def test_without_summaries_there_is_no_word_and_no_error(capsys):
    summaries = [MergeAllSummaries(), MergeAllSummaries(run_alone=True), MovingAverageSummary()]
    assert MiniTrainer(summaries).train().monitors.state_dict() == {}
    assert log_lines(capsys) == []


def test_the_mean_over_a_window():
    # values  1  2  3  4  5  6  7, window of 3, put after steps 3 and 6
    variable = counter()
    value = tf.add(variable, 1.0, name="value")
    with tf.control_dependencies([value]):
        train_op = tf.assign(variable, value).op
    trainer = MiniTrainer(
        [SimpleMovingAverage(["value"], 3)], train_op=train_op, steps_per_epoch=7
    ).train()
    assert trainer.monitors.get_history("value/SMA") == [(3, 2.0), (6, 5.0)]


def test_only_scalars_have_a_moving_average():
    tf.constant(np.zeros(2), name="pair")
    with pytest.raises(ValueError, match="pair:0 has shape"):
        MiniTrainer([SimpleMovingAverage(["pair"], 3)]).train()


def test_a_window_of_other_tensors_is_refused():
    average = SimpleMovingAverage(["a", "b"], 3)
    with pytest.raises(ValueError, match=r"has 2 tensors, the saved window has shape \[2, 1\]"):
        average.load_state_dict({"window": np.zeros([2, 1])})
