"""Runs on several towers: their devices and input, what is saved and resumed, how they fail."""

import os

import numpy as np
import pytest

from tensorpack.callbacks import Callback, ModelSaver, PeriodicTrigger, RunUpdateOps
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.input_source import FeedInput, QueueInput, StagingInput
from tensorpack.models import BatchNorm, BatchRenorm
from tensorpack.tfutils.dependency import ancestors
from tensorpack.tfutils.sessinit import JustCurrentSession, SaverRestore
from tensorpack.train import (
    AsyncMultiGPUTrainer,
    MultiGPUTrainerBase,
    SimpleTrainer,
    StopTraining,
    SyncMultiGPUTrainerParameterServer,
    SyncMultiGPUTrainerReplicated,
    launch_train_with_config,
    multigpu,
)
from tensorpack.train.determinism import one_thread
from tensorpack.utils import fix_rng_seed
from tensorpack.utils.rng import _streams
from tests import helpers
from tests.helpers import TinyModel
from tests.tiers import first_fast
from tests.train.test_multigpu import (
    BATCH,
    OPTIMIZERS,
    Regression,
    Result,
    batches,
    check_equal,
    fed,
)
from tests.train.test_simple import LastValues, flow

SYNCHRONOUS = [SyncMultiGPUTrainerParameterServer, SyncMultiGPUTrainerReplicated]


def two_towers(callbacks=(), **options):
    """A config for two towers, each on a CPU device of its own."""
    session_config = one_thread()
    session_config.device_count["CPU"] = 2
    options = {"nr_tower": 2, "model": TinyModel(), "session_config": session_config, **options}
    if "data" not in options:
        options.setdefault("dataflow", flow())
    return helpers.config(callbacks, **options)


@pytest.fixture
def seeded(monkeypatch):
    monkeypatch.setattr(_streams, "seeded", False)
    fix_rng_seed(3)


class Normalized(TinyModel):
    """Has averages of its batches, which the training uses if they are renormalized."""

    def __init__(self, renormalized):
        super().__init__(0.01)
        self._renormalized = renormalized

    def build_graph(self, x, y):
        x = tf.reshape(x, [-1, 1])
        x = BatchRenorm("bn", x, 3.0, 3.0) if self._renormalized else BatchNorm("bn", x)
        return super().build_graph(tf.reshape(x, [-1]), y)


def uneven():
    """Datapoints whose means differ."""
    x = np.random.RandomState(2).randn(24, 8).astype(np.float32)
    x += np.arange(24, dtype=np.float32)[:, None]
    return DataFromList([[batch, 2 * batch] for batch in x], shuffle=False)


@pytest.mark.parametrize("kind", first_fast(SYNCHRONOUS))
def test_averages_and_predictions_are_those_of_the_first_tower(kind, seeded):
    class Predicts(Callback):
        def _setup_graph(self):
            self._predict = self.trainer.get_predictor(["x"], ["predicted"])

        def _after_train(self):
            self.predicted = self._predict([np.float32([1.0, 2.0])])[0]

    result, predicts = Result(), Predicts()
    callbacks, options = [result, predicts, RunUpdateOps()], {"deterministic": True}
    options.update(model=Normalized(False), dataflow=uneven(), steps_per_epoch=3)
    trainer = kind(two_towers(callbacks, **options))
    trainer.train()
    saved = result.saved
    averages = [0.0]
    for mean in [x.mean() for x, _ in uneven()][0:6:2]:
        averages.append(0.9 * averages[-1] + 0.1 * mean)
    np.testing.assert_allclose(saved["bn/mean/EMA"], averages[-1:], rtol=1e-5)
    x = (np.float32([1, 2]) - saved["bn/mean/EMA"]) / np.sqrt(saved["bn/variance/EMA"] + 1e-5)
    x = x * saved["bn/gamma"] + saved["bn/beta"]
    expected = x * saved["weight"] + saved["bias"]
    np.testing.assert_allclose(predicts.predicted, expected, rtol=1e-4)
    assert [tower.ns_name for tower in trainer.towers.training()] == ["tower0", "tower1"]


def test_copies_of_averages_follow_their_tower_where_the_training_reads_them(seeded):
    result = Result()
    options = {"model": Normalized(True), "dataflow": uneven(), "deterministic": True}
    config = two_towers([result], extra_callbacks=[RunUpdateOps()], **options)
    SyncMultiGPUTrainerReplicated(config).train()
    averages = result.saved["bn/mean/EMA"], result.local["tower1/bn/mean/EMA"]
    for index, average in enumerate(averages):
        means = [x.mean() for x, _ in uneven()][index : index + 3 : 2]
        np.testing.assert_allclose(average, [0.09 * means[0] + 0.1 * means[1]], rtol=1e-5)


@pytest.mark.parametrize("kind", SYNCHRONOUS)
def test_averages_are_updated_behind_all_gradients_in_a_deterministic_run(kind, seeded):
    class Keeps(kind):
        def _compute_gradients(self, *args, **options):
            self.built = super()._compute_gradients(*args, **options)
            return self.built

    options = {"model": Normalized(False), "dataflow": uneven(), "deterministic": True}
    trainer = Keeps(two_towers(extra_callbacks=[RunUpdateOps()], **options))
    trainer.setup()
    with trainer.sess, trainer.graph.as_default():
        gradients = {gradient.op for tower in trainer.built for gradient, _ in tower}
        updates = {*ancestors(tf.get_collection(tf.GraphKeys.UPDATE_OPS))} - {*ancestors(gradients)}
        assigned = [op for op in updates if op.type.startswith("Assign")]
        assert assigned and all(gradients <= {*ancestors([op])} for op in assigned)


class StopAt(Callback):
    def __init__(self, step):
        self._step = step

    def _trigger_step(self):
        if self.global_step == self._step:
            raise StopTraining("to be resumed")


@pytest.mark.parametrize(
    "kind, stop_at, make_input",
    first_fast(
        [
            (SyncMultiGPUTrainerParameterServer, 2, QueueInput),
            (SyncMultiGPUTrainerParameterServer, 4, fed),
            (SyncMultiGPUTrainerReplicated, 2, fed),
            (SyncMultiGPUTrainerReplicated, 4, QueueInput),
        ]
    ),
)
def test_a_resumed_run_ends_as_an_unbroken_one(kind, stop_at, make_input, seeded, tmp_path):
    """Each tower has statistics of its own here, so it matters which one has which data."""

    def run(directory, *callbacks, resume="never"):
        result = Result()
        saver = PeriodicTrigger(ModelSaver(checkpoint_dir=str(directory)), every_k_steps=2)
        with tf.Graph().as_default():
            config = two_towers(
                [saver, result, RunUpdateOps(), *callbacks],
                model=Normalized(True),
                data=make_input(uneven()),
                steps_per_epoch=4,
                max_epoch=2,
                deterministic=True,
                resume=resume,
            )
            kind(config).train()
        return {**result.saved, **result.local}

    expected = run(tmp_path / "whole")
    run(tmp_path / "parts", StopAt(stop_at))
    fix_rng_seed(3)
    resumed = run(tmp_path / "parts", resume=str(tmp_path / "parts"))
    assert {*resumed} == {*expected}
    for name in {*expected} - {"QueueInput/consumed"}:  # counted from the start of each run
        assert np.array_equal(resumed[name], expected[name]), name


@pytest.mark.slow
@pytest.mark.parametrize("first, second", first_fast([(1, 2), (2, 1)]))
@pytest.mark.parametrize("optimizer", first_fast(["adam", "accumulated"]))
def test_checkpoints_of_any_number_of_towers_are_exchangeable(first, second, optimizer, tmp_path):
    def run(towers, begin, end, callback, session_init=None):
        kind = SyncMultiGPUTrainerReplicated if towers == 2 else SimpleTrainer
        examples = list(batches(BATCH // towers))[begin * towers : end * towers]
        with tf.Graph().as_default():
            config = two_towers(
                [callback],
                nr_tower=towers,
                model=Regression(OPTIMIZERS[optimizer]),
                dataflow=DataFromList(examples, shuffle=False),
                session_init=session_init,
                steps_per_epoch=end - begin,
            )
            kind(config).train()

    whole, parts = Result(), Result()
    run(1, 0, 6, whole)
    run(first, 0, 3, ModelSaver(checkpoint_dir=str(tmp_path)))
    run(second, 3, 6, parts, SaverRestore(os.path.join(str(tmp_path), "model-3")))
    check_equal(parts.saved, whole.saved)


def test_a_bad_cost_of_any_tower_ends_the_run():
    data = DataFromList(
        [[np.float32([1]), np.float32([1])], [np.float32([np.nan])] * 2], shuffle=False
    )
    with pytest.raises(FloatingPointError, match="tower[01]/cost is nan"):
        SyncMultiGPUTrainerParameterServer(two_towers(dataflow=data)).train()


def devices_of(trainer, *names):
    return [trainer.graph.get_operation_by_name(name).device for name in names]


def test_towers_and_variables_have_their_devices():
    def build(kind, **options):
        with tf.Graph().as_default():
            trainer = kind(two_towers(**options))
            trainer.setup()
            trainer.sess.close()
        return trainer

    costs = ["tower0/cost", "tower1/cost"]
    cpus = ["/device:CPU:0", "/device:CPU:1"]
    spread = build(SyncMultiGPUTrainerParameterServer)
    assert devices_of(spread, *costs, "weight", "bias") == [*cpus, *cpus]
    copies = build(SyncMultiGPUTrainerReplicated)
    assert devices_of(copies, *costs, "weight", "tower1/weight") == [*cpus, *cpus]
    on_gpus = build(SyncMultiGPUTrainerReplicated, session_config=None, tower=[1, 3])
    assert devices_of(on_gpus, *costs) == ["/device:GPU:1", "/device:GPU:3"]
    on_cpu = build(lambda config: SyncMultiGPUTrainerParameterServer(config, "cpu"))
    assert devices_of(on_cpu, *costs, "weight", "bias") == [*cpus, cpus[0], cpus[0]]

    def with_devices_of_a_script(config):
        trainer = SyncMultiGPUTrainerParameterServer(config)
        trainer.devices = cpus[::-1]
        return trainer

    assert devices_of(build(with_devices_of_a_script), *costs) == cpus[::-1]


@pytest.mark.parametrize("gpus, prefetch", [(True, True), (True, False), (False, True)])
def test_a_queue_is_staged_where_there_are_gpus(gpus, prefetch, monkeypatch):
    monkeypatch.setattr(multigpu, "have_gpus", lambda: gpus)
    look = LastValues()
    config = two_towers([look], steps_per_epoch=100, session_config=None)
    SyncMultiGPUTrainerReplicated(config, gpu_prefetch=prefetch, mode="cpu").train()
    assert type(config.data) is (StagingInput if gpus and prefetch else QueueInput)
    np.testing.assert_allclose(look.values, [3, 2], atol=0.1)


@pytest.mark.parametrize("every_epoch", first_fast([True, False]))
def test_copies_are_set_to_the_main_variables(every_epoch, capsys):
    class Disturbs(Callback):
        def _setup_graph(self):
            self.weights = [tf.trainable_variables()[0], *tf.local_variables("tower1/weight")]

        def _trigger_epoch(self):
            if self.epoch_num == 1:
                self.weights[0].load(5.0)

        def _after_epoch(self):
            self.seen = tf.get_default_session().run(self.weights)

    class Mine(SyncMultiGPUTrainerReplicated):
        BROADCAST_EVERY_EPOCH = every_epoch

    disturbs = Disturbs()
    trainer = Mine(two_towers(max_epoch=2, steps_per_epoch=0))
    trainer.register_callback(disturbs)
    trainer.train()
    main, copy = disturbs.seen
    assert main == 5 and (copy == 5) == every_epoch
    assert "] Running Op sync" in capsys.readouterr().out


def test_copies_have_what_the_main_variables_begin_with_in_each_worker():
    class Five(JustCurrentSession):
        def init(self, sess):
            with sess.as_default():
                tf.trainable_variables()[0].load(5.0)

    class Looks(Callback):
        _chief_only = False

        def _before_epoch(self):
            self.seen = tf.get_default_session().run(tf.local_variables("tower1/weight"))

    looks = Looks()
    trainer = SyncMultiGPUTrainerReplicated(
        two_towers([looks], steps_per_epoch=0, session_init=Five())
    )
    trainer.is_chief = False
    trainer.train()
    assert looks.seen == [5]


def test_trainers_that_cannot_be_made():
    with pytest.raises(ValueError, match=r"different GPU ids, got \[1, 1\]"):
        AsyncMultiGPUTrainer([1, 1])
    with pytest.raises(ValueError, match="'gpu' or 'cpu'"):
        SyncMultiGPUTrainerParameterServer(2, "tpu")
    with pytest.raises(TypeError, match="2 options"):
        SyncMultiGPUTrainerReplicated(2, True, "cpu", 1)
    with pytest.raises(ValueError, match="must be 'shared', or 'replicated' with vs_names"):
        MultiGPUTrainerBase.build_on_multi_tower([0], list, vs_names=["a"])


def test_runs_that_cannot_be(seeded):
    with pytest.raises(TypeError, match="data for each of several towers"):
        SyncMultiGPUTrainerReplicated(two_towers(data=FeedInput(flow()))).train()
    with pytest.raises(ValueError, match=r"asks for the towers \[0, 1\], .* made for \[0, 1, 2\]"):
        launch_train_with_config(two_towers(), SyncMultiGPUTrainerReplicated(3))
    with pytest.raises(ValueError, match="cannot be deterministic"):
        AsyncMultiGPUTrainer(two_towers(deterministic=True)).train()
