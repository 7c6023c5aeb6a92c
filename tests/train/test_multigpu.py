"""Several towers train as one does with a larger batch, whatever the trainer and the optimizer."""

import numpy as np
import pytest

from tensorpack.callbacks import (
    Callback,
    DataParallelInferenceRunner,
    MergeAllSummaries,
    MovingAverageSummary,
    ProcessTensors,
    RunUpdateOps,
    ScalarStats,
    ScheduledHyperParamSetter,
)
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.graph_builder import ModelDesc, allreduce_grads
from tensorpack.input_source import DataParallelFeedInput, QueueInput, StagingInput
from tensorpack.models import BatchNorm, FullyConnected, regularize_cost_from_collection
from tensorpack.tfutils.common import get_global_step_var
from tensorpack.tfutils.gradproc import GlobalNormClip, ScaleGradient, SummaryGradient
from tensorpack.tfutils.loss_scale import LossScaleOptimizer
from tensorpack.tfutils.optimizer import (
    AccumGradOptimizer,
    ProxyOptimizer,
    VariableAssignmentOptimizer,
    apply_grad_processors,
)
from tensorpack.tfutils.summary import add_moving_summary
from tensorpack.train import (
    AsyncMultiGPUTrainer,
    SimpleTrainer,
    SyncMultiGPUTrainer,
    SyncMultiGPUTrainerParameterServer,
    SyncMultiGPUTrainerReplicated,
    launch_train_with_config,
    multigpu,
)
from tests import helpers
from tests.helpers import TinyModel
from tests.tiers import first_fast
from tests.train.test_simple import LastValues, TinyModelOf2017, flow

STEPS, BATCH = 6, 12  # of all towers together


def values(*shape):
    return np.cos(np.arange(np.prod(shape))).reshape(shape).astype(np.float32)


class Regression(ModelDesc):
    """Learns from words: an embedding, whose gradients are sparse, and a layer with decay."""

    def __init__(self, make_optimizer):
        self._make_optimizer = make_optimizer

    def inputs(self):
        return [tf.TensorSpec([None], tf.int32, "word"), tf.TensorSpec([None, 3], tf.float32, "y")]

    def build_graph(self, word, y):
        table = tf.get_variable("table", initializer=values(7, 5))
        kernel = tf.get_variable(
            "kernel", initializer=values(5, 3), regularizer=lambda v: 0.1 * tf.nn.l2_loss(v)
        )
        bias = tf.get_variable("bias", [3], initializer=tf.zeros_initializer())
        predicted = tf.matmul(tf.tanh(tf.gather(table, word)), kernel) + bias
        cost = tf.reduce_mean(tf.square(predicted - y), name="cost")
        add_moving_summary(cost)
        return cost + regularize_cost_from_collection()

    def optimizer(self):
        return self._make_optimizer()


def batches(size):
    """The same examples, in batches of one size or another."""
    rng = np.random.RandomState(1)
    words, ys = rng.randint(0, 7, STEPS * BATCH), rng.randn(STEPS * BATCH, 3).astype(np.float32)
    words = words.astype(np.int32)
    parts = range(0, len(words), size)
    return DataFromList([[words[at : at + size], ys[at : at + size]] for at in parts], False)


def clipped():
    processors = [GlobalNormClip(0.5), ScaleGradient(("kernel", 0.5)), SummaryGradient()]
    return apply_grad_processors(tf.train.AdamOptimizer(0.1), processors)


def bounded():
    return VariableAssignmentOptimizer(
        tf.train.MomentumOptimizer(0.1, 0.9), lambda v: tf.clip_by_value(v, -0.9, 0.9)
    )


class Negated(ProxyOptimizer):
    """A wrapper of a user."""

    def apply_gradients(self, grads_and_vars, *args, **kwargs):
        return self._opt.apply_gradients([(-g, v) for g, v in grads_and_vars], *args, **kwargs)


class OfAUser(tf.train.AdamOptimizer):
    """An optimizer that does more than TensorFlow's in its update."""

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        return super().apply_gradients(list(grads_and_vars)[:2], global_step, name)


OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.3),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "adagrad dual averaging": lambda: tf.train.AdagradDAOptimizer(0.1, get_global_step_var()),
    "clipped": clipped,
    "accumulated": lambda: AccumGradOptimizer(tf.train.AdamOptimizer(0.1), 2),
    "scaled": lambda: LossScaleOptimizer(tf.train.AdamOptimizer(0.1)),
    "bounded": bounded,
    "negated": lambda: Negated(tf.train.AdamOptimizer(0.1)),
    "of a user": lambda: OfAUser(0.1),
}


class Result(Callback):
    """Keeps all global variables at the end, and the local ones."""

    def _after_train(self):
        run = self.trainer.sess.run
        self.saved = {var.op.name: run(var) for var in tf.global_variables()}
        self.local = {var.op.name: run(var) for var in tf.local_variables()}


def train(make_trainer, make_optimizer, towers, callbacks=(), **options):
    """Trains the same examples on so many towers; returns the callback that looked at the end."""
    result = Result()
    with tf.Graph().as_default():
        cpus = tf.ConfigProto(device_count={"CPU": towers + 1}, allow_soft_placement=True)
        options = {
            "model": Regression(make_optimizer),
            "steps_per_epoch": STEPS,
            "nr_tower": towers,
            "session_config": cpus,
            **options,
        }
        if "data" not in options:
            options.setdefault("dataflow", batches(BATCH // towers))
        make_trainer(helpers.config([*callbacks, result], **options)).train()
    return result


_expected = {}


def check_like_one_tower(result, optimizer):
    """Compares with the end of a run of a single tower."""
    if optimizer not in _expected:
        _expected[optimizer] = train(SimpleTrainer, OPTIMIZERS[optimizer], 1).saved
    expected = _expected[optimizer]
    assert "EMA/cost" in result.saved and not any("tower" in name for name in result.saved)
    check_equal(result.saved, expected)
    assert np.abs(expected["kernel"] - values(5, 3)).max() > 0.01


def check_equal(saved, expected):
    """Compares variables, but for averages of costs, which are those of the first tower."""
    names = sorted(name for name in expected if not name.startswith("EMA/"))
    assert [name for name in sorted(saved) if not name.startswith("EMA/")] == names
    for name in names:
        np.testing.assert_allclose(saved[name], expected[name], 1e-5, 1e-6, err_msg=name)


def check_copies(result, towers):
    """The copies of variables and slots are what those of the first tower are."""
    copies = {name: value for name, value in result.local.items() if name.startswith("tower")}
    assert {f"tower{i}/{name}" for i in range(1, towers) for name in ("kernel", "table")} <= {
        *copies
    }
    for name, value in copies.items():
        np.testing.assert_allclose(value, result.saved[name.partition("/")[2]], rtol=1e-6)


def parameter_server(device):
    return lambda config: SyncMultiGPUTrainerParameterServer(config, ps_device=device)


def replicated(mode):
    key = "use_nccl" if isinstance(mode, bool) else "mode"  # as in 2018
    return lambda config: SyncMultiGPUTrainerReplicated(config, **{key: mode})


@pytest.mark.parametrize(
    "device, optimizer, towers",
    first_fast(
        [("gpu", "adam", 2), ("cpu", "clipped", 4), ("gpu", "accumulated", 2), ("gpu", "sgd", 4)]
    ),
)
def test_towers_with_shared_variables_train_as_one(device, optimizer, towers):
    result = train(parameter_server(device), OPTIMIZERS[optimizer], towers)
    check_like_one_tower(result, optimizer)


@pytest.mark.parametrize("optimizer", first_fast(sorted(OPTIMIZERS)))
def test_towers_with_copies_of_the_variables_train_as_one(optimizer):
    result = train(replicated("cpu"), OPTIMIZERS[optimizer], 2)
    check_like_one_tower(result, optimizer)
    check_copies(result, 2)


@pytest.mark.parametrize("mode, towers", first_fast([("gpu", 2), ("hierarchical", 4), (True, 1)]))
def test_all_ways_to_add_up_gradients_train_as_one(mode, towers):
    result = train(replicated(mode), OPTIMIZERS["clipped"], towers)
    check_like_one_tower(result, "clipped")
    check_copies(result, towers) if towers > 1 else None


class Weighted(ModelDesc):
    def inputs(self):
        return [tf.TensorSpec([None], tf.float32, "x")]

    def build_graph(self, x):
        factor = tf.get_variable("factor", initializer=1.0, trainable=False)
        return factor * tf.reduce_mean(x) * tf.get_variable("weight", initializer=0.0)

    def optimizer(self):
        return tf.train.GradientDescentOptimizer(1.0)


def test_what_is_set_within_an_epoch_is_set_in_all_towers():
    setter = ScheduledHyperParamSetter("factor", [(2, 0.0)], step_based=True)
    x = DataFromList([[np.float32([1.0])]])
    result = train(SyncMultiGPUTrainerReplicated, None, 2, [setter], model=Weighted(), dataflow=x)
    assert result.saved["weight"] == -2.0


def test_from_eight_towers_on_they_are_added_up_hierarchically(monkeypatch):
    modes = []
    monkeypatch.setattr(
        multigpu,
        "allreduce_grads",
        lambda grads, average, mode: modes.append(mode) or allreduce_grads(grads, average, "cpu"),
    )
    x = DataFromList([[np.float32([1.0])]])
    for towers in (2, 8):
        with tf.Graph().as_default():
            run("launch", SyncMultiGPUTrainerReplicated, towers, model=Weighted(), dataflow=x)
    assert modes == ["gpu", "hierarchical"]


def run(how, kind, towers, *arguments, **options):
    """Trains by a trainer that is given the config, the towers, or neither of them."""
    config = helpers.config(nr_tower=1 if how == "towers" else towers, **options)
    if how == "config":
        kind(config, *arguments).train()
    else:
        launch_train_with_config(config, kind(*[towers] * (how == "towers"), *arguments))


def learned(how, kind, *arguments, model):
    look = LastValues()
    options = {"model": model, "dataflow": flow(), "steps_per_epoch": 100}
    run(how, kind, 2, *arguments, callbacks=[look], **options)
    return look.values


@pytest.mark.parametrize(
    "how, kind, arguments",
    first_fast(
        [
            ("config", SyncMultiGPUTrainer, []),
            ("config", SyncMultiGPUTrainerParameterServer, ["cpu", False]),
            ("config", SyncMultiGPUTrainerReplicated, [False]),
            ("config", AsyncMultiGPUTrainer, [True]),
            ("towers", SyncMultiGPUTrainer, []),
            ("towers", SyncMultiGPUTrainerParameterServer, [None]),
            ("towers", SyncMultiGPUTrainerReplicated, [True, "cpu"]),
            ("towers", AsyncMultiGPUTrainer, [True]),
        ],
        3,
    ),
)
def test_both_spellings_learn_a_line(how, kind, arguments):
    model = TinyModelOf2017() if how == "config" else TinyModel()
    np.testing.assert_allclose(learned(how, kind, *arguments, model=model), [3, 2], atol=0.1)


@pytest.mark.parametrize(
    "wrap", first_fast([lambda opt: AccumGradOptimizer(opt, 2), LossScaleOptimizer])
)
def test_asynchronous_towers_share_what_an_optimizer_keeps(wrap):
    model = TinyModel()
    model.optimizer = lambda: wrap(tf.train.GradientDescentOptimizer(0.1))
    values = learned("towers", AsyncMultiGPUTrainer, model=model)
    np.testing.assert_allclose(values, [3, 2], atol=0.1)


@pytest.mark.parametrize(
    "how, kind, towers, cpus",
    first_fast(
        [
            ("config", SyncMultiGPUTrainer, 3, {0, 1}),
            ("launch", SyncMultiGPUTrainer, 3, {0, 1}),
            ("towers", SyncMultiGPUTrainer, 2, {0}),
            ("config", SyncMultiGPUTrainerParameterServer, 3, {0, 1}),
            ("launch", SyncMultiGPUTrainerParameterServer, 3, {0, 1}),
            ("towers", SyncMultiGPUTrainerParameterServer, 2, {0, 1}),
            ("towers", SyncMultiGPUTrainerParameterServer, 3, {0}),
        ],
        2,
    ),
)
def test_where_the_two_variables_are_by_default(how, kind, towers, cpus):
    session_config = tf.ConfigProto(device_count={"CPU": 3}, allow_soft_placement=True)
    run(how, kind, towers, model=TinyModel(), dataflow=flow(), session_config=session_config)
    devices = [tf.DeviceSpec.from_string(var.device) for var in tf.trainable_variables()]
    assert {device.device_index for device in devices} == cpus


class Normalized(ModelDesc):
    """A layer, the statistics of its outputs over all towers, and another layer."""

    def inputs(self):
        return [tf.TensorSpec([None], tf.int32, "x"), tf.TensorSpec([None, 3], tf.float32, "y")]

    def build_graph(self, x, y):
        start = tf.constant_initializer(np.cos(np.arange(28)))
        hidden = FullyConnected("fc", tf.one_hot(x, 7), 4, start, use_bias=False)
        hidden = tf.tanh(BatchNorm("bn", hidden, sync_statistics="nccl"))
        start = tf.constant_initializer(np.sin(np.arange(12)))
        predicted = FullyConnected("out", hidden, 3, start)
        tf.reduce_sum(x, name="number")
        tf.summary.scalar("average", tf.reduce_mean(y))
        cost = tf.reduce_mean(tf.square(predicted - y), name="cost")
        add_moving_summary(cost)
        return cost

    def optimizer(self):
        return tf.train.MomentumOptimizer(0.1, 0.9)


def fed(data, towers=2):
    return DataParallelFeedInput(data, [f"tower{i}" for i in range(towers)])


@pytest.mark.parametrize(
    "kind, towers, make_input",
    first_fast(
        [
            (SyncMultiGPUTrainerParameterServer, 2, QueueInput),
            (SyncMultiGPUTrainerReplicated, 3, lambda data: fed(data, 3)),
            (SyncMultiGPUTrainerReplicated, 2, lambda data: StagingInput(QueueInput(data), 2)),
        ]
    ),
)
def test_layers_with_the_statistics_of_all_towers_train_as_one(kind, towers, make_input):
    one, several = [
        train(make, None, count, [RunUpdateOps()], model=Normalized(), data=source).saved
        for make, count, source in [
            (SimpleTrainer, 1, QueueInput(batches(BATCH))),
            (kind, towers, make_input(batches(BATCH // towers))),
        ]
    ]
    check_equal(several, one)


@pytest.mark.parametrize(
    "kind",
    first_fast(
        [AsyncMultiGPUTrainer, SyncMultiGPUTrainerReplicated, SyncMultiGPUTrainerParameterServer]
    ),
)
def test_scalars_and_names_are_those_of_the_first_tower(kind):
    seen, trainers = [], []
    callbacks = [
        RunUpdateOps(),
        MovingAverageSummary(),
        MergeAllSummaries(),
        ProcessTensors(["number"], seen.append),
        DataParallelInferenceRunner(batches(8), ScalarStats("cost"), [1, 2]),
    ]

    def make(config):
        trainers.append(kind(config))
        return trainers[0]

    train(make, None, 2, callbacks, model=Normalized(), data=fed(batches(BATCH // 2)))
    (trainer,) = trainers
    assert trainer.monitors.state_dict().keys() == {"average", "cost", "validation_cost"}
    np.testing.assert_array_equal(seen, [x.sum() for x, _ in batches(BATCH // 2)][::2])
    towers = [(tower.ns_name, tower["cost"].device[-5:]) for tower in trainer.towers]
    assert towers == [
        ("tower0", "CPU:0"),
        ("tower1", "CPU:1"),
        ("InferenceTower0", "CPU:1"),
        ("InferenceTower1", "CPU:2"),
    ]
