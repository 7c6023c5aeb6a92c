"""Trainers with parameter servers; the processes of a cluster are threads of this one here."""

import itertools
from concurrent.futures import ThreadPoolExecutor

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
from tensorpack.tfutils.sesscreate import NewSessionCreator, ReuseSessionCreator
from tensorpack.tfutils.sessinit import DictRestore
from tensorpack.tfutils.tower import TowerContext
from tensorpack.train import (
    DistributedReplicatedTrainer,
    DistributedTrainerParameterServer,
    DistributedTrainerReplicated,
    SimpleTrainer,
    TrainConfig,
    launch_train_with_config,
)
from tensorpack.train.group import trainer as group_trainer
from tests.helpers import config
from tests.tiers import first_fast

STEPS, BATCH = 5, 4


@pytest.fixture(autouse=True)
def one_run(monkeypatch):
    """Trainers of one process are runs after one another, elsewhere."""
    monkeypatch.setattr(group_trainer, "_runs", itertools.repeat(0))


class Servers:
    """The servers of a cluster, all in this process; for one run."""

    def __init__(self, workers, ps=1, cpus=1):
        options = tf.ConfigProto(device_count={"CPU": cpus})
        self._all = [
            tf.train.Server(each.as_dict(), each.job, each.index, None, options)
            for each in _hosts.on_this_machine(workers, ps)
        ]
        self.workers = self._all[:workers]

    def run(self, train):
        """Calls train(server, index) for all workers at once; returns what they return."""

        def run(server, index):
            with tf.Graph().as_default():
                return train(server, index)

        with ThreadPoolExecutor(len(self.workers)) as pool:
            return list(pool.map(run, self.workers, itertools.count()))


class Regression(ModelDesc):
    """Learns from words: an embedding, whose gradients are sparse, and a layer."""

    def __init__(self, make_optimizer):
        self._make_optimizer = make_optimizer

    def inputs(self):
        return [tf.TensorSpec([None], tf.int32, "word"), tf.TensorSpec([None, 3], tf.float32, "y")]

    def build_graph(self, word, y):
        start = [tf.constant_initializer(np.cos(np.arange(size))) for size in (35, 15)]
        table = tf.get_variable("table", [7, 5], initializer=start[0])
        kernel = tf.get_variable("kernel", [5, 3], initializer=start[1])
        predicted = tf.matmul(tf.tanh(tf.gather(table, word)), kernel)
        return tf.reduce_mean(tf.square(predicted - y), name="cost")

    def optimizer(self):
        return self._make_optimizer()


def batches(index):
    """The data of a worker."""
    rng = np.random.RandomState(index)
    words = rng.randint(0, 7, [STEPS, BATCH]).astype(np.int32)
    return [[word, rng.rand(BATCH, 3).astype(np.float32)] for word in words]


class Values(Callback):
    """Takes the values of all global variables at the end of the run."""

    _chief_only = False

    def _trigger_epoch(self):
        self.values = self.trainer.sess.run({each.op.name: each for each in tf.global_variables()})


def train_all(servers, make_optimizer, **options):
    """Trains on all workers; returns the variables as each sees them at the end."""

    def train(server, index):
        seen, data = Values(), DataFromList(batches(index), shuffle=False)
        own = {"model": Regression(make_optimizer), "dataflow": data, "steps_per_epoch": STEPS}
        DistributedReplicatedTrainer(config([seen], **own, **options), server).train()
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
                grads.append(optimizer.compute_gradients(model.build_graph(*each)))
        update = tf.group(*[tf.convert_to_tensor(each) for pairs in grads for each, _ in pairs])
        for pairs in grads:
            with tf.control_dependencies([update]):
                update = optimizer.apply_gradients(pairs)
        session.run(tf.global_variables_initializer())
        data = [batches(index) for index in range(number)]
        for step in range(STEPS):
            fed = [zip(each, data[index][step]) for index, each in enumerate(inputs)]
            session.run(update, dict(itertools.chain(*fed)))
        return session.run({each.op.name: each for each in tf.global_variables()})


def sgd(rate=0.1):
    return tf.train.GradientDescentOptimizer(rate)


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
        assert values["global_step"] == STEPS
        for name, value in expected.items():
            np.testing.assert_allclose(values[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


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


def normalising(callbacks, index=0, **options):
    """A run of `Normalised` with the data of a worker."""
    data = DataFromList([[np.float32(np.eye(4, 3) + index)]])
    return config(callbacks, model=Normalised(), dataflow=data, **options)


class Predict(Callback):
    """Predicts at the end of the run, with what the worker has."""

    _chief_only = False

    def _setup_graph(self):
        self._predict = self.trainer.get_predictor(["x"], ["output"])

    def _trigger_epoch(self):
        self.output = self._predict(np.float32([[1, 2, 3]]))[0]


@pytest.mark.slow
@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_chief_saves_what_any_trainer_loads_and_others_start_with_what_it_loads(
    asynchronous, tmp_path
):
    start = {"learning_rate": 0.25, "factor": 2, "bn/gamma": [1, 2, 3], "bn/mean/EMA": [1, 1, 1]}
    start = {"global_step": 100, **{name: np.float32(value) for name, value in start.items()}}

    def train(server, index):
        seen, predict = Values(), Predict()
        path = str(tmp_path / str(index))
        saver = ModelSaver(checkpoint_dir=path, asynchronous=asynchronous)
        of_run = {"session_init": DictRestore(start)} if index == 0 else {}
        trainer = DistributedTrainerReplicated([0, 1], server)
        own = normalising([RunUpdateOps(), predict, seen, saver], index, **of_run)
        launch_train_with_config(own, trainer)
        assert trainer.is_chief == (index == 0)
        scopes = [each.op.name.partition("/")[0] for each in tf.local_variables()]
        assert scopes.count("tower0") == scopes.count("tower1") == 5
        devices = {tf.DeviceSpec.from_string(each.device).task for each in tf.trainable_variables()}
        assert devices == {0, 1}  # of the parameter servers
        return seen.values, predict.output

    (chief, output), (other, _) = Servers(2, ps=2, cpus=2).run(train)
    for values in chief, other:
        assert [values[n] for n in ("global_step", "learning_rate", "factor")] == [102, 0.25, 2]
        assert not np.allclose(values["bn/gamma"], [1, 2, 3])
    saved = load_checkpoint_vars(str(tmp_path / "0" / "model-102"))
    assert set(saved) == set(chief)
    assert saved["bn/mean/EMA"][0] == pytest.approx(0.25 + 0.75 * 0.9**2, rel=1e-5)
    np.testing.assert_allclose(saved["bn/gamma"], chief["bn/gamma"])
    predict, options = Predict(), {"max_epoch": 2, "steps_per_epoch": 0}
    SimpleTrainer(normalising([predict], session_init=DictRestore(saved), **options)).train()
    np.testing.assert_allclose(predict.output, output, rtol=1e-5)


@pytest.mark.slow
def test_asynchronous_workers_converge_and_count_their_own_steps():
    def train(server, index):
        trainer = DistributedTrainerParameterServer(1, server, ["cpu", "gpu"][index])
        seen, steps = Values(), 150 + 20 * index
        data = DataFromList([[np.int32([0, 1, 2, 3]), np.ones([4, 3], np.float32)]])
        own = {"model": Regression(lambda: sgd(0.3)), "dataflow": data, "steps_per_epoch": steps}
        launch_train_with_config(config([seen], **own), trainer)
        return seen.values

    for index, values in enumerate(Servers(2).run(train)):
        predicted = np.tanh(values["table"][:4]) @ values["kernel"]
        np.testing.assert_allclose(predicted, np.ones([4, 3]), atol=0.02)
        assert values["global_step"] == 150 + 20 * index


def test_what_cannot_be_trained_is_refused():
    server, options = Servers(1).workers[0], {"model": Regression(sgd), "steps_per_epoch": 1}
    with tf.Graph().as_default():
        data = DataFromList(batches(0))
        for creator in (ReuseSessionCreator(None), NewSessionCreator(target=server.target)):
            with pytest.raises(ValueError, match="takes a NewSessionCreator without a target"):
                own = TrainConfig(dataflow=data, session_creator=creator, **options)
                DistributedReplicatedTrainer(own, server)
        with pytest.raises(ValueError, match="caching_device must be 'cpu' or 'gpu', got 'tpu'"):
            DistributedTrainerParameterServer(1, server, "tpu")
        with pytest.raises(ValueError, match="needs parameter servers: start a group by"):
            DistributedReplicatedTrainer(TrainConfig(dataflow=data, **options))
        alone = tf.train.Server({"worker": ["127.0.0.1:0"]}, "worker", 0)
        with pytest.raises(ValueError, match="in a cluster with the jobs 'ps' and 'worker'"):
            DistributedReplicatedTrainer(TrainConfig(dataflow=data, **options), alone)
