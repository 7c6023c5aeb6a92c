"""Trainers with one tower learn, wherever their data come from and whatever a class overrides."""

import numpy as np
import pytest

from tensorpack.callbacks import Callback, ModelSaver
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFlow, DataFromList, FakeData
from tensorpack.graph_builder import InputDesc, ModelDesc, ModelDescBase
from tensorpack.input_source import FeedInput, QueueInput, StagingInput, TensorInput
from tensorpack.tfutils.tower import TowerContext
from tensorpack.train import (
    NoOpTrainer,
    QueueInputTrainer,
    SimpleTrainer,
    SingleCostTrainer,
    SyncMultiGPUTrainerReplicated,
    TrainConfig,
    launch_train_with_config,
)
from tensorpack.train.simple import (
    FeedfreeTrainerBase,
    SimpleFeedfreeTrainer,
    SingleCostFeedfreeTrainer,
    apply_default_prefetch,
)
from tests import helpers
from tests.computing import compiled, need_bf16, ops_in, run_nodes
from tests.helpers import TinyModel
from tests.tiers import first_fast

X = np.linspace(-1, 1, 8).astype(np.float32)
POINTS = [[X, 3 * X + 2]]


class TinyModelOf2017(ModelDesc):
    """`TinyModel` in the spelling of 2017."""

    def _get_inputs(self):
        return [InputDesc(tf.float32, [None], "x"), InputDesc(tf.float32, [None], "y")]

    def _build_graph(self, inputs):
        x, y = inputs
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
        self.cost = tf.reduce_mean(tf.square(x * weight + bias - y), name="cost")

    def _get_optimizer(self):
        return tf.train.GradientDescentOptimizer(0.1)


class LastValues(Callback):
    """Keeps the weights of the last step."""

    def _trigger_step(self):
        self.values = self.trainer.sess.run(tf.trainable_variables())


def config(**options):
    look = LastValues()
    options = {"model": TinyModel(), "steps_per_epoch": 100, **options}
    return look, helpers.config([look], **options)


def flow():
    return DataFromList(POINTS, shuffle=False)


SOURCES = {
    "dataflow": lambda: {"dataflow": flow()},
    "feed": lambda: {"data": FeedInput(flow())},
    "queue": lambda: {"data": QueueInput(flow())},
    "tensors": lambda: {"data": TensorInput(lambda: list(map(tf.constant, POINTS[0])))},
}


@pytest.mark.parametrize(
    "source, model",
    [*((name, TinyModel) for name in sorted(SOURCES)), ("feed", TinyModelOf2017)],
)
def test_learns_the_same_line_from_every_source(source, model):
    look, options = config(model=model(), **SOURCES[source]())
    SimpleTrainer(options).train()
    np.testing.assert_allclose(look.values, [3, 2], atol=0.1)


@pytest.mark.parametrize("name", ["mine", "input_queue"])
def test_a_queue_trainer_puts_its_dataflow_into_a_queue(name):
    mine = tf.RandomShuffleQueue(20, 5, [tf.float32] * 2, name=name) if name == "mine" else None
    look, options = config(dataflow=flow())
    QueueInputTrainer(options, mine).train()
    assert isinstance(options.data, QueueInput)
    assert [op.name for op in look.graph.get_operations() if "Queue" in op.type][0] == name
    np.testing.assert_allclose(look.values, [3, 2], atol=0.1)


@pytest.mark.parametrize("source", ["feed", "queue", "staged"])
def test_too_long_datapoints_are_cut_for_a_model_of_2017_only(source, capfd):
    def longer():
        data = DataFromList([[*POINTS[0], 1, "more"]], shuffle=False)
        if source == "feed":
            return FeedInput(data)
        return QueueInput(data) if source == "queue" else StagingInput(QueueInput(data))

    look, options = config(model=TinyModelOf2017(), data=longer())
    SimpleTrainer(options).train()
    np.testing.assert_allclose(look.values, [3, 2], atol=0.1)
    assert capfd.readouterr().out.count("have 4 components, the model takes 2 (x, y)") == 1
    with tf.Graph().as_default():
        _, options = config(data=longer())
        with pytest.raises(ValueError, match="has 4 components"):
            SimpleTrainer(options).train()


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({}, ValueError, "needs dataflow or data"),
        ({"dataflow": flow(), "model": ModelDescBase()}, TypeError, "needs a ModelDesc"),
        ({"dataflow": flow(), "model": None}, ValueError, r"no model .* TrainConfig\(model="),
        ({"dataflow": flow(), "nr_tower": 2}, ValueError, "trains one tower"),
    ],
)
def test_configs_that_cannot_be_trained(options, error, text):
    _, options = config(**options)
    with pytest.raises(error, match=text):
        SimpleTrainer(options).train()


@pytest.mark.parametrize("cost", [lambda x, y: x, lambda x, y: None])
def test_a_cost_must_be_a_scalar_tensor(cost):
    _, options = config(dataflow=flow())
    options.model.build_graph = cost
    with pytest.raises(ValueError, match="must be a scalar tensor"):
        SimpleTrainer(options).train()


def test_a_model_that_forgets_its_regularisation_is_told_so(capfd):
    class Forgets(TinyModel):
        def build_graph(self, x, y):
            tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, tf.constant(1.0))
            return super().build_graph(x, y)

    _, options = config(model=Forgets(), dataflow=flow())
    SimpleTrainer(options).train()
    assert "REGULARIZATION_LOSSES are used by nothing" in capfd.readouterr().out


def test_fp16_scales_the_cost_of_any_model():
    _, options = config(dataflow=flow(), precision="fp16")
    if tf.test.is_gpu_available():
        pytest.skip("a GPU has it")
    trainer = SimpleTrainer(options)
    with pytest.raises(RuntimeError, match="precision='fp16' has no effect here"):
        trainer.train()
    names = {var.op.name for var in tf.global_variables()}
    assert {"weight", "bias", "loss_scale/scale", "loss_scale/good_steps"} <= names


class Deep(TinyModel):
    """Some products more, so that there is something to compile."""

    def build_graph(self, x, y):
        weights = tf.get_variable("weights", initializer=np.eye(8, dtype=np.float32))
        output = tf.reshape(x, [-1, 8])
        for _ in range(3):
            output = tf.nn.relu(tf.matmul(output, weights))
        tf.reduce_mean(output, name="predicted")
        return tf.reduce_mean(tf.square(output - y), name="cost")


class Nodes(Callback):
    """Runs an update and a prediction, and keeps which nodes that takes."""

    def _setup_graph(self):
        predictor = self.trainer.get_predictor(["x"], ["predicted"])
        feed = {tensor: [1.0] * 8 for tensor in predictor.input_tensors}
        self._runs = [(self.trainer.train_op, None), (predictor.output_tensors, feed)]

    def _after_train(self):
        self.nodes = [run_nodes(self.trainer.sess, *run)[1] for run in self._runs]


def nodes_of_a_run(**options):
    nodes = Nodes()
    options = {"model": Deep(), "steps_per_epoch": 1, **SOURCES["tensors"](), **options}
    SimpleTrainer(helpers.config([nodes], **options)).train()
    return nodes.nodes


@pytest.mark.slow
@pytest.mark.parametrize("xla", [True, False])
def test_xla_compiles_training_and_prediction(xla):
    for nodes in nodes_of_a_run(xla=xla):
        assert compiled(nodes) == xla


@pytest.mark.parametrize("precision", ["bf16", None])
def test_bf16_holds_for_training_and_prediction(precision):
    need_bf16()
    for nodes in nodes_of_a_run(precision=precision):
        assert bool(ops_in(tf.bfloat16, nodes)) == (precision == "bf16")


def test_no_op_trainer_runs_what_the_callbacks_ask_for():
    class Adds(Callback):
        def _setup_graph(self):
            self.counter = tf.get_variable("counter", [], initializer=tf.zeros_initializer())
            self.add = tf.assign_add(self.counter, 1)

        def _before_run(self, ctx):
            return [self.add]

        def _after_train(self):
            self.total = self.counter.eval()

    adds = Adds()
    NoOpTrainer().train(callbacks=[adds], steps_per_epoch=5, max_epoch=2)
    assert adds.total == 10


class MyTrainer(FeedfreeTrainerBase):
    """Builds its own training op, as trainers of several costs do."""

    def _setup(self):
        super()._setup()
        cost = self.build_train_tower()
        self.train_op = self.config.model.get_optimizer().minimize(cost)


@pytest.mark.parametrize(
    "kind",
    first_fast([MyTrainer, SingleCostFeedfreeTrainer, SimpleFeedfreeTrainer]),
    ids=lambda k: k.__name__,
)
def test_trainers_of_2017_with_their_input_in_the_graph(kind):
    look, options = config(data=FeedInput(flow()))
    with pytest.raises(TypeError, match="needs a FeedfreeInput"):
        kind(options)
    options.data = QueueInput(flow())
    kind(options).train()
    np.testing.assert_allclose(look.values, [3, 2], atol=0.1)


class Game(DataFlow, Callback):
    """Data that a training has a part in, without a state, as in old scripts."""

    def __iter__(self):
        while True:
            yield POINTS[0]


@pytest.mark.parametrize("resume", ["auto", "must"])
def test_a_run_on_data_without_a_state_is_saved_and_refused_only_strictly(resume, log_dir, capfd):
    def trainer(**options):
        game = Game()
        options.update(dataflow=game, model=TinyModel())
        return SimpleTrainer(helpers.config([game, ModelSaver()], **options))

    trainer(max_epoch=2).train()
    assert capfd.readouterr().out.count("cannot be resumed exactly: Game keeps no state") == 1
    with tf.Graph().as_default():
        second = trainer(max_epoch=3, resume=resume)
        if resume == "must":
            with pytest.raises(ValueError, match="state of Game was not kept"):
                second.train()
        else:
            second.train()
            assert second.global_step == 6


class ByHand(SingleCostTrainer):
    """Builds its tower as a subclass of 0.11 does."""

    def _setup_graph(self, input, get_cost_fn, get_opt_fn):
        with TowerContext("", is_training=True):
            grads = self._make_get_grad_fn(input, get_cost_fn, get_opt_fn)()
            self.train_op = get_opt_fn().apply_gradients(grads, name="mine")
        self.spy = helpers.CallbackSpy()
        return [self.spy]


class WithOwnGradients(ByHand):
    """The same with nothing of the library's."""

    def _setup_graph(self, input, get_cost_fn, get_opt_fn):
        with TowerContext("", is_training=True):
            cost = get_cost_fn(*input.get_input_tensors())
            self.train_op = get_opt_fn().minimize(cost, name="mine")
        self.spy = helpers.CallbackSpy()
        return [self.spy]


@pytest.mark.parametrize(
    "kind, source",
    first_fast(
        [
            (SimpleTrainer, FeedInput),
            (QueueInputTrainer, QueueInput),
            (ByHand, QueueInput),
            (WithOwnGradients, QueueInput),
        ],
        2,
    ),
)
def test_a_config_and_a_trainer_are_launched(kind, source):
    look, options = config(dataflow=flow())
    trainer = kind()
    launch_train_with_config(options, trainer)
    assert trainer.global_step == 100 and trainer.model is options.model
    assert type(options.data) is source
    np.testing.assert_allclose(look.values, [3, 2], atol=0.1)
    if isinstance(trainer, ByHand):
        assert trainer.train_op.name == "mine" and "after_train" in trainer.spy.tape
        assert [tower.ns_name for tower in trainer.towers.training()] == [""]


def test_a_trainer_without_steps_builds_the_model_and_does_not_train():
    look, options = config(dataflow=flow())
    trainer = NoOpTrainer()
    launch_train_with_config(options, trainer)
    assert look.values == [0, 0] and trainer.train_op is not None


def test_what_cannot_be_launched():
    _, options = config(dataflow=flow())
    with pytest.raises(TypeError, match="such as SimpleTrainer"):
        launch_train_with_config(options, SimpleTrainer)
    with pytest.raises(ValueError, match="needs a model"):
        launch_train_with_config(TrainConfig(dataflow=flow()), SimpleTrainer())
    with pytest.raises(NotImplementedError, match=r"must override _setup_graph\(\)"):
        launch_train_with_config(options, SingleCostTrainer())


@pytest.mark.parametrize(
    "switch, value, argument, passed",
    first_fast(
        [
            ("COLOCATE_GRADIENTS_WITH_OPS", False, "colocate_gradients_with_ops", False),
            ("GATE_GRADIENTS", False, "gate_gradients", tf.train.Optimizer.GATE_NONE),
            ("AGGREGATION_METHOD", 2, "aggregation_method", 2),
        ]
    ),
)
def test_switches_of_a_class_reach_the_optimizer(switch, value, argument, passed):
    seen = []

    class Optimizer(tf.train.GradientDescentOptimizer):
        def compute_gradients(self, *args, **kwargs):
            seen.append(kwargs[argument])
            return super().compute_gradients(*args, **kwargs)

    for kind in SimpleTrainer, type("Switched", (SimpleTrainer,), {switch: value}):
        with tf.Graph().as_default():
            _, options = config(dataflow=flow(), steps_per_epoch=1)
            options.model.optimizer = lambda: Optimizer(0.1)
            launch_train_with_config(options, kind())
    assert seen[0] != seen[1] == passed


@pytest.mark.slow
def test_a_class_that_asks_for_xla_gets_it():
    nodes = Nodes()
    _, options = config(model=Deep(), steps_per_epoch=1, **SOURCES["tensors"]())
    options.callbacks.append(nodes)
    launch_train_with_config(options, type("Compiled", (SimpleTrainer,), {"XLA_COMPILE": True})())
    assert all(map(compiled, nodes.nodes))


def test_the_input_that_a_trainer_makes_of_a_dataflow():
    ds = FakeData([[2]], 1)
    assert type(apply_default_prefetch(ds, SimpleTrainer())) is FeedInput
    for trainer in QueueInputTrainer(), SyncMultiGPUTrainerReplicated(2):
        source = apply_default_prefetch(ds, trainer)
        assert type(source) is QueueInput and source.ds is ds
        assert apply_default_prefetch(source, trainer) is source
