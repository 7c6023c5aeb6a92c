"""Batches that wait in front of their step: their order, what is counted, and how it all ends."""

import threading

import pytest

from tensorpack.callbacks import Callback, MergeAllSummaries, ModelSaver, ProcessTensors
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.input_source import (
    BatchQueueInput,
    DataFlowEmpty,
    PlaceholderInput,
    QueueInput,
    StagingInput,
    StagingInputWrapper,
    TensorInput,
)
from tensorpack.tfutils.tower import TowerContext
from tensorpack.train import SimpleTrainer
from tensorpack.utils import fix_rng_seed
from tensorpack.utils.stopping import Interrupted
from tests.contracts.input_source import InputSourceContract, InputStateContract
from tests.dataflow.flows import numbers
from tests.helpers import TinyModel, config

from .run_source import FlowOf, hooked, running

SIGNATURE = [tf.TensorSpec([], tf.int32, "number")]


class TestStagedQueue(InputSourceContract):
    size = 6

    def make_source(self):
        images = [[[[0.0] * 3] * 2, [0, 1]]] * 6
        return StagingInput(QueueInput(DataFromList(images, shuffle=False)))


@pytest.mark.slow
class TestStateOfMoreThanTheQueueHolds(InputStateContract):
    def make_source(self, flow):
        queue = tf.FIFOQueue(1, [tf.int32], name="small")
        return StagingInput(QueueInput(flow, queue), nr_stage=5)


class TestStateOfBatches(InputStateContract):
    per_step = 3

    def make_source(self, flow):
        return StagingInput(BatchQueueInput(flow, 3), nr_stage=2)


def test_batches_come_in_their_order_and_ahead_of_their_step(logged):
    source = StagingInput(QueueInput(numbers(1000)), nr_stage=3)
    with running(source, SIGNATURE) as (_, sess, (x,), callbacks):
        session = hooked(sess, callbacks)
        assert [session.run(x) for _ in range(4)] == [0, 1, 2, 3]
        assert [sess.run(x) for _ in range(3)] == [4, 5, 6]  # nobody refills the buffer
    assert "Pre-filling StagingArea ..." in logged
    assert "3 elements put into StagingArea on each tower." in logged


def test_other_runs_leave_the_buffers_alone():
    source = StagingInput(QueueInput(numbers(1000)))
    one = tf.constant(1)
    with running(source, SIGNATURE) as (_, sess, (x,), callbacks):
        session = hooked(sess, callbacks)
        values = [session.run(tensor) for tensor in [one, x, one, one, x, x]]
    assert values == [1, 0, 1, 1, 1, 2]


def test_each_tower_has_its_own_buffer_on_its_device():
    source = StagingInput(QueueInput(numbers(1000)), nr_stage=2)

    owner = source.setup(SIGNATURE)[0]
    for gpu in range(2):
        with tf.device(f"/gpu:{gpu}"), TowerContext(f"tower{gpu}", is_training=False):
            (tensor,) = source.get_input_tensors()
        assert (tensor.op.type, tensor.device) == ("Unstage", f"/device:GPU:{gpu}")
    graph = tf.get_default_graph()
    stages = [op for op in graph.get_operations() if op.type == "Stage"]
    assert [op.device for op in stages] == ["/device:GPU:0", "/device:GPU:1"]
    assert "CPU" in stages[0].inputs[0].device
    assert "CPU" in graph.get_operation_by_name("QueueInput/consumed").device
    assert (owner._consumed.per_run, owner._consumed.ahead) == (2, 4)


class TestStateOfTowers(InputStateContract):
    """What a step takes is the same set in each run, and the position is behind it."""

    per_step = 2

    def make_source(self, flow):
        source = StagingInput(QueueInput(flow), nr_stage=3)
        setup, source.setup = source.setup, lambda signature: setup(SIGNATURE)
        get = source.get_input_tensors

        def get_input_tensors():
            parts = []
            for i in range(2):
                with tf.device(f"/cpu:{i}"), TowerContext(f"tower{i}", True, index=i):
                    parts += get()
            return [tf.sort(tf.stack(parts))]

        source.get_input_tensors = get_input_tensors
        return source


def test_a_device_may_be_given():
    source = StagingInput(TensorInput(lambda: [tf.constant(1)]), device="/gpu:1")
    source.setup(SIGNATURE)
    with tf.device("/gpu:0"):
        (x,) = source.get_input_tensors()
    assert x.device == "/device:GPU:1"


def test_a_step_without_a_further_batch_does_not_happen():
    """Were it to happen, the variables would have moved, and the count of steps not."""
    release = threading.Event()

    def one_pass(number):
        yield [1]
        yield [2]
        release.wait(10)
        yield [3]

    source = StagingInput(QueueInput(FlowOf(one_pass)))
    updates = tf.get_variable("updates", initializer=0, use_resource=True)

    def step():
        (x,) = source.get_input_tensors()
        return [x, updates.assign_add(x, read_value=False)]

    with running(source, SIGNATURE, step) as (trainer, sess, fetches, callbacks):
        session = hooked(sess, callbacks)
        session.run(fetches)
        timer = threading.Timer(0.1, lambda: trainer.stop_token.request(Interrupted(2)))
        timer.start()
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(fetches)
        timer.join()
        assert sess.run(updates) == 1
        assert callbacks[0].state_dict()["count"] == 1
        release.set()
    assert not [thread for thread in threading.enumerate() if thread.name == "EnqueueThread"]


class HalfFed(SimpleTrainer):
    """Its step has a second run, whose op needs no data, as with a generator and noise."""

    def _setup_graph(self, *args):
        callbacks = super()._setup_graph(*args)
        count = tf.get_variable("count", initializer=0, trainable=False)
        self.other_op = tf.assign_add(count, 1).op
        return callbacks

    def run_step(self):
        self.hooked_sess.run(self.train_op)
        self.hooked_sess.run(self.other_op)


class Unreached(TinyModel):
    """A model whose cost needs the data and whose gradient does not."""

    def build_graph(self, x, y):
        cost = super().build_graph(0.0, 2.0)
        tf.summary.scalar("mean", tf.reduce_mean(x))
        return cost + 0.0 * tf.reduce_mean(tf.identity(x, name="seen"))


def train(data, trainer=SimpleTrainer, **options):
    class Seen(Callback):
        def _setup_graph(self):
            self.weights = []
            self.variable = tf.global_variables("weight")[0]

        def _trigger_step(self):
            self.weights.append(self.trainer.sess.run(self.variable))

    seen = Seen()
    callbacks = [seen, *options.pop("callbacks", [])]
    with tf.Graph().as_default():
        options = {"data": data(), "model": TinyModel(), "steps_per_epoch": 6, **options}
        trainer(config(callbacks, **options)).train()
    return seen.weights


def points():
    return DataFromList([[[0.1 * i, 1.0], [1.0, 0.2 * i]] for i in range(5)])


def staged():
    return StagingInput(QueueInput(points()), nr_stage=2)


@pytest.mark.parametrize("trainer", [SimpleTrainer, HalfFed])
def test_training_is_that_of_the_input_alone(trainer):
    fix_rng_seed(3)
    plain = train(lambda: QueueInput(points()), trainer, max_epoch=1)
    fix_rng_seed(3)
    assert train(staged, trainer, max_epoch=1) == plain


@pytest.mark.parametrize("trainer", [SimpleTrainer, HalfFed])
def test_a_run_that_is_saved_continues_exactly(trainer, log_dir):
    fix_rng_seed(3)
    whole = train(staged, trainer, max_epoch=2)
    fix_rng_seed(3)
    first = train(staged, trainer, max_epoch=1, callbacks=[ModelSaver()])
    fix_rng_seed(3)
    rest = train(staged, trainer, max_epoch=2, callbacks=[ModelSaver()], resume="must")
    assert first + rest == whole


def test_what_a_callback_alone_asks_for_is_there_in_each_step():
    seen = []

    def data():
        flow = DataFromList([[[float(i)], [0.0]] for i in range(50)], shuffle=False)
        return StagingInput(QueueInput(flow), nr_stage=2)

    look = ProcessTensors(["seen:0"], lambda value: seen.append(float(value[0])))
    train(data, model=Unreached(), callbacks=[look], max_epoch=1)
    assert seen == [0, 1, 2, 3, 4, 5]


def test_summaries_in_a_run_of_their_own_take_a_batch_that_is_replaced():
    """They would empty the buffer, and the second of them would wait for ever."""
    train(
        lambda: StagingInput(QueueInput(points())),
        model=Unreached(),
        callbacks=[MergeAllSummaries(period=1, run_alone=True)],
        max_epoch=2,
    )


def test_an_error_of_the_data_is_that_of_the_run():
    with pytest.raises(DataFlowEmpty):
        train(lambda: StagingInput(QueueInput(FlowOf(lambda number: []))), max_epoch=1)


def test_a_deterministic_run_refuses_it():
    fix_rng_seed(3)
    with pytest.raises(ValueError, match="use the input without StagingInput"):
        train(staged, max_epoch=1, deterministic=True)


def test_wrong_arguments():
    queue = QueueInput(numbers(1000))
    for wrong in PlaceholderInput(), StagingInput(queue), numbers(1000):
        with pytest.raises(TypeError, match=f"such as a QueueInput.* got {type(wrong).__name__}"):
            StagingInput(wrong)
    with pytest.raises(ValueError, match="nr_stage must be a whole number of at least 1"):
        StagingInput(queue, nr_stage=0)


@pytest.mark.parametrize(
    "devices, device", [(["/cpu:0"], "/device:CPU:0"), (["/cpu:0", "/gpu:0"], ""), ([0], "")]
)
def test_the_spelling_of_2017(devices, device):
    source = StagingInputWrapper(QueueInput(numbers(3)), devices)
    source.setup(SIGNATURE)
    (tensor,) = source.get_input_tensors()
    assert isinstance(source, StagingInput) and tensor.device == device
    with pytest.raises(TypeError, match="devices must be a list"):
        StagingInputWrapper(QueueInput(numbers(3)), 2)
