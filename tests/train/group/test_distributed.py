"""Trainers with parameter servers; the processes of a cluster are threads of this one here."""

import contextlib
import gc
import signal
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from tensorpack.callbacks import Callback, ModelSaver, RunUpdateOps
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.graph_builder import ModelDesc
from tensorpack.launch import _hosts
from tensorpack.models import BatchNorm
from tensorpack.tfutils.checkpoint import load_checkpoint_vars
from tensorpack.tfutils.gradproc import GlobalNormClip
from tensorpack.tfutils.optimizer import AccumGradOptimizer, apply_grad_processors
from tensorpack.tfutils.precision import ComputeOptions
from tensorpack.tfutils.sesscreate import NewSessionCreator, ReuseSessionCreator
from tensorpack.tfutils.sessinit import DictRestore
from tensorpack.tfutils.tower import TowerContext
from tensorpack.train import (
    DistributedReplicatedTrainer,
    DistributedTrainerParameterServer,
    DistributedTrainerReplicated,
    SimpleTrainer,
    StopTraining,
    TrainConfig,
    TrainingInterrupted,
    launch_train_with_config,
)
from tensorpack.train.group import distributed_base
from tensorpack.train.group import members as group
from tensorpack.train.group.trainer import GroupTrainer
from tensorpack.utils.stopping import Interrupted
from tests.helpers import config
from tests.tiers import first_fast

STEPS, BATCH = 5, 4


class Servers:
    """The servers of a cluster, all in this process; for one run."""

    def __init__(self, workers, ps=1, cpus=1):
        options = tf.ConfigProto(device_count={"CPU": cpus})
        clusters = _hosts.on_this_machine(workers, ps)
        self._all = [
            tf.train.Server(
                tf.train.ClusterSpec(each.as_dict()), each.job, each.index, None, options
            )
            for each in clusters
        ]
        self.workers = [s for s, each in zip(self._all, clusters) if each.job == "worker"]

    def run(self, train):
        """Calls train(server, index) for all workers at once; returns what they return."""
        results = [None] * len(self.workers)

        def run(index):
            with tf.Graph().as_default():
                results[index] = train(self.workers[index], index)

        threads = [threading.Thread(target=run, args=[i]) for i in range(1, len(results))]
        for each in threads:
            each.start()
        run(0)
        for each in threads:
            each.join(60)
        return results


class Regression(ModelDesc):
    """Learns from words: an embedding, whose gradients are sparse, and a layer."""

    def __init__(self, make_optimizer):
        self._make_optimizer = make_optimizer

    def inputs(self):
        return [tf.TensorSpec([None], tf.int32, "word"), tf.TensorSpec([None, 3], tf.float32, "y")]

    def build_graph(self, word, y):
        table = tf.get_variable("table", initializer=numbers(7, 5))
        kernel = tf.get_variable("kernel", initializer=numbers(5, 3))
        predicted = tf.matmul(tf.tanh(tf.gather(table, word)), kernel)
        return tf.reduce_mean(tf.square(predicted - y), name="cost")

    def optimizer(self):
        return self._make_optimizer()


def numbers(*shape):
    return np.cos(np.arange(np.prod(shape))).reshape(shape).astype(np.float32)


def batches(index, batch=BATCH):
    """The data of a worker."""
    rng = np.random.RandomState(index)
    words = rng.randint(0, 7, [STEPS, batch]).astype(np.int32)
    return [[word, rng.rand(batch, 3).astype(np.float32)] for word in words]


class Values(Callback):
    """Takes the values of all global variables at the end of the run."""

    _chief_only = False

    def _setup_graph(self):
        self.values = None

    def _trigger_epoch(self):
        variables = tf.global_variables()
        found = tf.get_default_session().run(variables)
        self.values = {each.op.name: value for each, value in zip(variables, found)}


def train_all(servers, make_optimizer, trainer=DistributedReplicatedTrainer, **options):
    """Trains on all workers; returns the variables as each sees them at the end."""

    def train(server, index):
        seen = Values()
        options_of_run = {"steps_per_epoch": STEPS, "callbacks": [seen], **options}
        data = DataFromList(batches(index), shuffle=False)
        model = Regression(make_optimizer)
        trainer(config(model=model, dataflow=data, **options_of_run), server).train()
        return seen.values

    return servers.run(train)


def in_turn(make_optimizer, number):
    """The variables after updates by one worker after the other, with gradients at equal values."""
    with tf.Graph().as_default(), tf.Session() as session:
        model = Regression(make_optimizer)
        inputs = [[tf.placeholder(s.dtype, s.shape) for s in model.inputs()] for _ in range(number)]
        optimizer, grads = model.get_optimizer(), []
        for index, each in enumerate(inputs):
            with TowerContext(f"tower{index}", is_training=True, index=index):
                cost = model.build_graph(*each)
                grads.append(optimizer.compute_gradients(cost))
        computed = [tf.convert_to_tensor(each) for pairs in grads for each, _ in pairs]
        update = tf.group(*computed)
        for pairs in grads:
            with tf.control_dependencies([update]):
                update = optimizer.apply_gradients(pairs)
        session.run(tf.global_variables_initializer())
        data = [batches(index) for index in range(number)]
        for step in range(STEPS):
            fed = {}
            for index, each in enumerate(inputs):
                fed.update(zip(each, data[index][step]))
            session.run(update, fed)
        return {each.op.name: session.run(each) for each in tf.global_variables()}


def sgd(rate=0.1):
    return tf.train.GradientDescentOptimizer(rate)


def check_close(found, expected):
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    "make_optimizer",
    first_fast(
        [
            lambda: tf.train.MomentumOptimizer(0.1, 0.9),
            lambda: tf.train.AdamOptimizer(0.01),
            lambda: apply_grad_processors(sgd(), [GlobalNormClip(0.1)]),
            lambda: AccumGradOptimizer(sgd(), 2),
        ]
    ),
    ids=["Momentum", "Adam", "GlobalNormClip", "AccumGrad"],
)
def test_a_step_is_an_update_by_each_worker_in_turn(make_optimizer):
    expected = in_turn(make_optimizer, 3)
    for values in train_all(Servers(3, ps=2), make_optimizer):
        check_close(values, expected)
        assert values["global_step"] == STEPS


class Normalised(ModelDesc):
    """A layer with batch normalisation, and a factor that callbacks may set."""

    def inputs(self):
        return [tf.TensorSpec([None, 3], tf.float32, "x")]

    def build_graph(self, x):
        factor = tf.get_variable("factor", [], initializer=tf.ones_initializer(), trainable=False)
        x = tf.identity(BatchNorm("bn", x) * factor, name="output")
        return tf.reduce_mean(tf.square(x - 1.0), name="cost")

    def optimizer(self):
        rate = tf.get_variable("learning_rate", initializer=0.1, trainable=False)
        return tf.train.AdamOptimizer(rate)


class Predict(Callback):
    """Predicts at the end of the run, with what the worker has."""

    _chief_only = False

    def _setup_graph(self):
        self._predict = self.trainer.get_predictor(["x"], ["output"])

    def _trigger_epoch(self):
        self.output = self._predict(np.float32([[1, 2, 3]]))[0]


@pytest.mark.slow
def test_the_chief_saves_what_any_trainer_loads_and_others_start_with_what_it_loads(tmp_path):
    start = {
        "global_step": 100,
        "learning_rate": np.float32(0.25),
        "bn/gamma": np.float32([1, 2, 3]),
    }
    start["factor"] = np.float32(2)

    def train(server, index):
        seen, predict = Values(), Predict()
        saver = ModelSaver(checkpoint_dir=str(tmp_path / str(index)))
        data = DataFromList([[np.float32(np.eye(4, 3) + index)]])
        of_run = {"session_init": DictRestore(start)} if index == 0 else {}
        trainer = DistributedTrainerReplicated([0, 1], server)
        launch_train_with_config(
            config(
                [RunUpdateOps(), predict, seen, saver],
                model=Normalised(),
                dataflow=data,
                **of_run,
            ),
            trainer,
        )
        assert trainer.is_chief == (index == 0)
        scopes = [each.op.name.partition("/")[0] for each in tf.local_variables()]
        assert scopes.count("tower0") == scopes.count("tower1") == 5
        devices = {tf.DeviceSpec.from_string(each.device).task for each in tf.trainable_variables()}
        assert devices == {0, 1}  # of the parameter servers
        return seen.values, predict.output

    (chief, output), (other, _) = Servers(2, ps=2, cpus=2).run(train)
    for values in chief, other:
        assert values["global_step"] == 102
        assert values["learning_rate"] == 0.25 and values["factor"] == 2
        assert not np.allclose(values["bn/gamma"], [1, 2, 3])
    saved = load_checkpoint_vars(str(tmp_path / "0" / "model-102"))
    assert set(saved) == set(chief)
    assert saved["bn/mean/EMA"][0] == pytest.approx(0.25 * (1 - 0.9**2), rel=1e-5)
    np.testing.assert_allclose(saved["bn/gamma"], chief["bn/gamma"])
    with tf.Graph().as_default():
        predict = Predict()
        data = DataFromList([[np.float32(np.eye(4, 3))]])
        SimpleTrainer(
            config(
                [predict],
                model=Normalised(),
                dataflow=data,
                max_epoch=2,
                steps_per_epoch=0,
                session_init=DictRestore(saved),
            )
        ).train()
    np.testing.assert_allclose(predict.output, output, rtol=1e-5)


@pytest.mark.slow
def test_asynchronous_workers_converge():
    def train(server, index):
        trainer = DistributedTrainerParameterServer(1, server, ["cpu", "gpu"][index])
        seen = Values()
        data = DataFromList([[np.int32([0, 1, 2, 3]), np.ones([4, 3], np.float32)]])
        launch_train_with_config(
            config([seen], model=Regression(lambda: sgd(0.3)), dataflow=data, steps_per_epoch=150),
            trainer,
        )
        return seen.values

    for values in Servers(2).run(train):
        predicted = np.tanh(values["table"][:4]) @ values["kernel"]
        np.testing.assert_allclose(predicted, np.ones([4, 3]), atol=0.02)
        assert values["global_step"] == 150


class StopAt(Callback):
    """Stops the training of one worker after so many steps."""

    _chief_only = False

    def __init__(self, step, error):
        self._step, self._error = step, error

    def _trigger_step(self):
        if self.global_step == self._step:
            raise self._error


@pytest.mark.parametrize("error", first_fast([StopTraining(), SystemExit(0)]))
def test_one_that_stops_training_ends_the_others_in_order(error):
    def train(server, index):
        data = DataFromList(batches(index))
        callbacks = [StopAt(3, error)] * index
        trainer = DistributedReplicatedTrainer(
            config(callbacks, model=Regression(sgd), dataflow=data, steps_per_epoch=1000), server
        )
        with contextlib.suppress(SystemExit):
            trainer.train()
        return trainer.loop.steps_taken

    assert Servers(2).run(train) == [3, 3]


class At(Callback):
    """Calls a function with the trainer behind a step of one worker."""

    _chief_only = False

    def __init__(self, step, action):
        self._step, self._action = step, action

    def _trigger_step(self):
        if self.global_step == self._step:
            self._action(self.trainer)


def ends(callbacks):
    """Trains with a callback for each worker; returns the trainers, and what each has raised."""

    def train(server, index):
        trainer = DistributedReplicatedTrainer(
            config(
                [callbacks[index]],
                model=Regression(sgd),
                dataflow=DataFromList(batches(index)),
                steps_per_epoch=1000,
            ),
            server,
        )
        try:
            trainer.train()
        except BaseException as error:
            return trainer, error

    return zip(*Servers(len(callbacks)).run(train))


def interrupt(trainer):
    trainer.signal_token.request(Interrupted(signal.SIGTERM))


@pytest.mark.slow
def test_a_signal_ends_a_worker_that_waits_in_vain_for_the_others(monkeypatch):
    after = GroupTrainer._after
    monkeypatch.setattr(GroupTrainer, "_after", lambda self, s, *args: after(self, s / 50, *args))
    monkeypatch.setattr(group, "_TELL_SECONDS", 0.1)
    ended = threading.Event()

    class WaitsForTheOther(At):
        def _after_train(self):
            ended.set()

    callbacks = [At(3, lambda trainer: ended.wait(60)), WaitsForTheOther(3, interrupt)]
    trainers, errors = ends(callbacks)
    assert ended.is_set() and type(errors[1]) is TrainingInterrupted
    assert trainers[1].loop.steps_taken == 3


@pytest.mark.slow
def test_a_chief_starts_with_the_moving_averages_that_it_loads_or_resumes(tmp_path):
    start = DictRestore({"bn/mean/EMA": np.float32([1, 1, 1])})

    def train(resume, epochs):
        saver = ModelSaver(checkpoint_dir=str(tmp_path))
        data = DataFromList([[np.float32(np.eye(4, 3))]])
        options = {"model": Normalised(), "dataflow": data, "resume": resume, "max_epoch": epochs}
        own = config([RunUpdateOps(), saver], session_init=start, **options)
        return lambda server, index: DistributedReplicatedTrainer(own, server).train()

    Servers(1).run(train("never", 1))
    Servers(1).run(train("must", 2))
    mean = load_checkpoint_vars(str(tmp_path / "model-4"))["bn/mean/EMA"]
    np.testing.assert_allclose(mean, [0.25 + 0.75 * 0.9**4] * 3, rtol=1e-5)


@pytest.mark.parametrize("lost, calls", [(None, {"close", "__del__"}), ("a worker", set())])
def test_a_session_is_let_go_unless_that_would_wait_for_a_lost_process(lost, calls, monkeypatch):
    gc.collect()  # sessions of other tests
    tape = []
    for name in ("close", "__del__"):
        real = getattr(tf.Session, name)

        def noting(session, name=name, real=real):
            tape.append(name)
            real(session)

        monkeypatch.setattr(tf.Session, name, noting, raising=False)
    group_of = SimpleNamespace(lost=lost)
    session = distributed_base._WorkerSession(group_of, "", tf.Graph(), None)
    session.close()
    del session
    gc.collect()
    assert set(tape) == calls


@pytest.mark.slow
def test_a_precision_is_tried_on_the_server_of_the_worker(monkeypatch):
    tried = []

    def check(self, config, target=""):
        tried.append((self.precision, target))

    monkeypatch.setattr(ComputeOptions, "check", check)
    servers = Servers(1)
    train_all(servers, sgd, precision="fp32")
    assert tried == [("fp32", servers.workers[0].target)]


def test_what_cannot_be_trained_is_refused():
    server, options = Servers(1).workers[0], {"model": Regression(sgd), "steps_per_epoch": 1}
    with tf.Graph().as_default():
        data = DataFromList(batches(0))
        for creator in (ReuseSessionCreator(None), NewSessionCreator(target=server.target)):
            with pytest.raises(ValueError, match="takes no session_creator"):
                own = TrainConfig(dataflow=data, session_creator=creator, **options)
                DistributedReplicatedTrainer(own, server)
        with pytest.raises(ValueError, match="caching_device must be 'cpu' or 'gpu', got 'tpu'"):
            DistributedTrainerParameterServer(1, server, "tpu")
        with pytest.raises(ValueError, match="was started alone: start a group by"):
            DistributedReplicatedTrainer(TrainConfig(dataflow=data, **options))
        alone = tf.train.Server({"worker": ["127.0.0.1:0"]}, "worker", 0)
        with pytest.raises(ValueError, match="with the jobs 'ps' and 'worker', got worker"):
            DistributedReplicatedTrainer(TrainConfig(dataflow=data, **options), alone)
