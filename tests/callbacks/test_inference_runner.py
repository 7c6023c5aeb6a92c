import os
import signal
import threading
import time

import numpy as np
import pytest

from tensorpack.callbacks import (
    BinaryClassificationStats,
    ClassificationError,
    DataParallelInferenceRunner,
    FeedfreeInferenceRunner,
    Inferencer,
    InferenceRunner,
    InferenceRunnerBase,
    ModelSaver,
    ScalarStats,
)
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import BatchData, DataFromList, MapData
from tensorpack.input_source import (
    BatchQueueInput,
    FeedInput,
    QueueInput,
    StagingInput,
    TensorInput,
)
from tensorpack.tfutils.tower import TowerContext, TowerFunc
from tensorpack.train import SimpleTrainer, Trainer, TrainingInterrupted
from tensorpack.utils import fix_rng_seed
from tests import helpers
from tests.callbacks.driver import MiniTrainer, log_lines
from tests.contracts.callback import CallbackContract
from tests.helpers import TinyModel
from tests.input_source.run_source import FlowOf
from tests.tiers import first_fast

X = np.arange(10, dtype=np.float32)
COST = float(np.mean(np.square(3 * X)))  # of a model that predicts 0
BATCHES = [[0.0, 3.0, 6.0, 9.0], [12.0, 15.0, 18.0, 21.0], [24.0, 27.0]]


class Model(TinyModel):
    """Does not learn unless told to; `wrong` is 1 where y > 9."""

    def __init__(self, learning_rate=0.0):
        super().__init__(learning_rate)

    def build_graph(self, x, y):
        tf.cast(tf.greater(y, 9.0), tf.float32, name="wrong")
        tf.greater(x, 5.0, name="positive")
        return super().build_graph(x, y)


class Collect(Inferencer):
    """Notes the labels of each datapoint, a list for each validation."""

    def __init__(self, notes=None):
        self.notes = [] if notes is None else notes

    def _before_inference(self):
        self._pass = []

    def _get_fetches(self):
        return ["y"]

    def _on_fetches(self, results):
        assert self.batch_size == len(results[0])
        self._pass.append(results[0].tolist())

    def _after_inference(self):
        self.notes.append(self._pass)


def examples(shuffle=False):
    return DataFromList([[x, 3 * x] for x in X], shuffle)


def batches(shuffle=False):
    return BatchData(examples(shuffle), 4, remainder=True)


def train(callbacks, **options):
    options = {"model": Model(), "dataflow": batches(), **options}
    trainer = SimpleTrainer(helpers.config(callbacks, **options))
    trainer.train()
    return trainer


def latest(trainer, *names):
    return [trainer.monitors.get_latest(name) for name in names]


SOURCES = {
    "dataflow": batches,
    "feed": lambda: FeedInput(batches()),
    "finite feed": lambda: FeedInput(batches(), infinite=False),
    "queue": lambda: QueueInput(batches()),
    "small queue": lambda: QueueInput(batches(), tf.FIFOQueue(1, [tf.float32] * 2)),
    "batch queue": lambda: BatchQueueInput(examples(), 5),
    "tensor": lambda: TensorInput(lambda: [tf.constant(X), tf.constant(3 * X)], size=2),
}


@pytest.mark.parametrize("source", SOURCES)
def test_each_validation_has_each_datapoint_once(source):
    stats = [ScalarStats("cost"), ClassificationError("wrong")]
    infs = [*stats, BinaryClassificationStats("positive", "wrong"), Collect()]
    trainer = train([InferenceRunner(SOURCES[source](), infs)], max_epoch=3)
    names = ["validation_cost", "validation_error", "val_precision", "val_recall"]
    np.testing.assert_allclose(latest(trainer, *names), [COST, 0.6, 1.0, 4 / 6], rtol=1e-6)
    assert [each.global_step for each in trainer.monitors.get_history(names[0])] == [2, 4, 6]
    if source not in ("batch queue", "tensor"):  # which have other batches
        assert infs[-1].notes == [BATCHES] * 3


def test_what_does_not_fill_a_batch_of_a_queue_is_left_out_also_by_a_resumed_run(tmp_path):
    def run(directory, max_epoch):
        collect = Collect()
        with tf.Graph().as_default():
            fix_rng_seed(3)
            saver = ModelSaver(checkpoint_dir=str(tmp_path / directory))
            runner = InferenceRunner(BatchQueueInput(examples(shuffle=True), 4), collect)
            train([runner, saver], max_epoch=max_epoch, resume="auto")
        return collect.notes

    whole = run("whole", 4)
    assert [[len(batch) for batch in each] for each in whole] == [[4, 4]] * 4
    assert run("cut", 2) + run("cut", 4) == whole


def test_the_model_is_the_one_that_learns_and_nothing_is_added_to_its_step():
    model, seen = Model(0.001), []

    class Predicted(Collect):
        def _get_fetches(self):
            seen.append(tf.get_collection("MOVING_SUMMARY_OPS") + tf.get_collection("summaries"))
            return ["predicted"]

    collect = Predicted()
    train([InferenceRunner(QueueInput(batches()), collect)], max_epoch=2, model=model)
    assert collect.notes[0] != collect.notes[1]
    assert collect.notes[0][0] != [0.0] * 4
    assert seen == [[]]


class TestSizes:
    def flow(self, count, length=None):
        labels = [[np.float32([i]), np.float32([i])] for i in range(count)]
        return FlowOf(lambda number: labels, length)

    def test_without_a_size_all_there_is_counts(self, capsys):
        collect = Collect()
        train([InferenceRunner(self.flow(3), collect)], max_epoch=2)
        assert collect.notes == [[[0.0], [1.0], [2.0]]] * 2
        assert any("evaluates until the data ends" in line for line in log_lines(capsys))

    def test_a_queue_must_know_it(self):
        with pytest.raises(ValueError, match=r"only if FlowOf has a length. .* FixedSizeData"):
            train([InferenceRunner(QueueInput(self.flow(3)), Collect())])

    def test_a_shorter_pass_is_reported(self, capsys):
        collect = Collect()
        train([InferenceRunner(self.flow(3, 4), collect)], max_epoch=2)
        assert collect.notes == [[[0.0], [1.0], [2.0]]] * 2
        said = "[InferenceRunner] The data ended after 3 datapoints, but its size is 4."
        assert log_lines(capsys).count(said) == 2
        with pytest.raises(ValueError, match="FlowOf gave 3 datapoints in a pass, but should give"):
            with tf.Graph().as_default():
                train([InferenceRunner(QueueInput(self.flow(3, 4)), Collect())], max_epoch=2)

    @pytest.mark.parametrize("kind", [FeedInput, QueueInput])
    def test_a_longer_pass_is_left(self, kind):
        collect = Collect()
        train([InferenceRunner(kind(self.flow(5, 2)), collect)], max_epoch=2)
        assert collect.notes == [[[0.0], [1.0]]] * 2

    def test_tensors_that_end_are_the_end(self):
        def tensors():
            dataset = tf.data.Dataset.from_tensors(([0.0], [0.0])).repeat(3)
            return list(tf.data.make_one_shot_iterator(dataset).get_next())

        collect = Collect()
        with pytest.raises(RuntimeError, match="The input of InferenceRunner has no data"):
            train([InferenceRunner(TensorInput(tensors), collect)], max_epoch=2)
        assert collect.notes == [[[0.0]] * 3]

    def test_models_without_batches_have_datapoints_of_size_one(self):
        class NoBatch(TinyModel):
            def inputs(self):
                return [tf.TensorSpec([], tf.float32, name) for name in "xy"]

        sizes = []

        class Sizes(ScalarStats):
            def _on_fetches(self, results):
                sizes.append(self.batch_size)

        train([InferenceRunner(examples(), Sizes("cost"))], model=NoBatch(), dataflow=examples())
        assert sizes == [1] * 10


class TestSeveral:
    def test_each_has_a_tower_of_its_own(self):
        test, validation = Collect(), Collect()
        runners = [
            InferenceRunner(batches(), [validation, ScalarStats("cost")]),
            InferenceRunner(QueueInput(examples_of(7)), [test, ScalarStats("cost", "test")]),
        ]
        trainer = train(runners, max_epoch=2)
        assert validation.notes == [BATCHES] * 2
        assert test.notes == [[[7.0]]] * 2
        assert latest(trainer, "validation_cost", "test_cost") == [COST, 49.0]
        names = [each.ns_name for each in trainer.towers.inference()]
        assert names == ["InferenceTower", "InferenceTower_1"]

    def test_scalars_of_one_name_are_a_warning(self, capsys):
        train([InferenceRunner(batches(), ScalarStats("cost")) for _ in range(2)], max_epoch=2)
        said = "[InferenceRunner] Two inferencers log 'validation_cost': give each a prefix"
        assert sum(line.startswith(said) for line in log_lines(capsys)) == 1


def examples_of(label):
    return DataFromList([[np.float32([1]), np.float32([label])]])


class TestDataParallel:
    @pytest.mark.parametrize("gpus", [1, [0, 1], 3, [-1, 0]])
    def test_towers_share_a_pass(self, gpus):
        collect, infs = Collect(), [ScalarStats("cost"), ClassificationError("wrong")]
        runner = DataParallelInferenceRunner(batches(), [*infs, collect], gpus)
        trainer = train([runner], max_epoch=3)
        np.testing.assert_allclose(
            latest(trainer, "validation_cost", "validation_error"), [COST, 0.6], rtol=1e-6
        )
        assert [sorted(each) for each in collect.notes] == [BATCHES] * 3
        count = gpus if isinstance(gpus, int) else len(gpus)
        names = [each.ns_name for each in trainer.towers.inference()]
        assert names == [f"InferenceTower{i}" for i in range(count)]

    def test_what_they_cannot_share(self):
        with pytest.raises(TypeError, match="each tower can read by itself, .* got FeedInput"):
            DataParallelInferenceRunner(FeedInput(batches()), Collect(), [0, 1])
        with pytest.raises(ValueError, match="gpus must be different devices, at least one"):
            DataParallelInferenceRunner(batches(), Collect(), [1, 1])
        tensors = TensorInput(lambda: [tf.constant(X)] * 2)
        with pytest.raises(ValueError, match="it must know its size"):
            train([DataParallelInferenceRunner(tensors, Collect(), 2)])


class CountRuns(tf.train.SessionRunHook):
    def __init__(self):
        self.runs = 0

    def before_run(self, ctx):
        self.runs += 1


def test_hooks_see_the_runs_of_the_validation():
    hooks = [CountRuns() for _ in range(3)]
    first = InferenceRunner(batches(), Collect(), "First", [hooks[0]])  # the order of 2017
    second = FeedfreeInferenceRunner(QueueInput(batches()), Collect(), extra_hooks=[hooks[1]])
    second.register_hook(hooks[2])
    train([first, second])
    assert [each.runs for each in hooks] == [3, 3, 3]
    with pytest.raises(RuntimeError, match="registered before the callbacks are set up"):
        first.register_hook(CountRuns())


@pytest.mark.parametrize("wrap", [lambda f, s: f, TowerFunc], ids=["function", "TowerFunc"])
def test_another_tower_function(wrap):
    def doubled(x, y):
        tf.reduce_sum(x + y, name="doubled")

    signature = [tf.TensorSpec([None], tf.float32, name) for name in "xy"]
    stats = ScalarStats("doubled", "", weighted=False)
    runner = InferenceRunner(batches(), stats, "Other", wrap(doubled, signature), device=-1)
    trainer = train([runner])
    assert latest(trainer, "doubled") == [pytest.approx(4 * X.sum() / 3)]
    assert trainer.graph.get_tensor_by_name("Other/doubled:0").device == "/device:CPU:0"


class TestErrors:
    def test_arguments(self):
        with pytest.raises(TypeError, match="must be an InputSource or a DataFlow, got"):
            InferenceRunner(None, Collect())
        with pytest.raises(TypeError, match="must be an Inferencer such as ScalarStats"):
            InferenceRunner(batches(), ["cost"])
        with pytest.raises(ValueError, match="cannot read a StagingInput"):
            InferenceRunner(StagingInput(QueueInput(batches())), Collect())
        with pytest.raises(NotImplementedError, match=r"must override _towers\(\)"):
            InferenceRunnerBase(batches(), Collect())._towers("")

    def test_a_trainer_without_a_model(self):
        trainer = Trainer(helpers.config([InferenceRunner(batches(), Collect())]))
        with pytest.raises(RuntimeError, match="Trainer has no tower function, so it cannot"):
            trainer.train()

    def test_a_tensor_that_is_not_there(self):
        with pytest.raises(KeyError, match="Tower 'InferenceTower' has no tensor"):
            train([InferenceRunner(batches(), ScalarStats("accuracy"))])

    def test_results_that_are_no_scalars(self, capsys):
        class Wrong(Collect):
            def _after_inference(self):
                return results

        results = {"text": "high", "pair": [1, 2], "none": None, "count": np.int64(3)}
        trainer = train([InferenceRunner(batches(), Wrong())])
        assert latest(trainer, "count") == [3]
        said = [line for line in log_lines(capsys) if "Wrong has no number for" in line]
        assert len(said) == 3

    @pytest.mark.parametrize("kind", [FeedInput, QueueInput])
    def test_an_error_of_the_data_is_that_of_the_run(self, kind):
        flow = MapData(batches(), lambda datapoint: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train([InferenceRunner(kind(flow), Collect())])

    def test_a_deterministic_run_has_no_several_towers(self):
        fix_rng_seed(1)
        with pytest.raises(ValueError, match="a deterministic run must not: use InferenceRunner"):
            runner = DataParallelInferenceRunner(batches(), Collect(), 2)
            train([runner], deterministic=True)


def test_a_deterministic_run_validates_through_a_queue():
    fix_rng_seed(1)
    collect = Collect()
    train([InferenceRunner(QueueInput(batches()), collect)], deterministic=True, max_epoch=2)
    assert collect.notes == [BATCHES] * 2


class Interrupt(Collect):
    """Notes validations; at a datapoint, counted over all, the user presses Ctrl-C."""

    def __init__(self, notes, at=None):
        super().__init__(notes)
        self._at, self._count = at, 0

    def _on_fetches(self, results):
        super()._on_fetches(results)
        self._count += 1
        if self._count == self._at:
            os.kill(os.getpid(), signal.SIGINT)
            assert self.trainer.stop_token.wait(5)

    def state_dict(self):
        return {"validations": len(self.notes), "batches": len(getattr(self, "_pass", []))}

    def load_state_dict(self, state):
        self.loaded = state


@pytest.mark.parametrize("kind", first_fast([FeedInput, QueueInput]))
@pytest.mark.parametrize("at", [4, 5])
def test_an_interrupted_validation_is_run_again_on_the_same_data(tmp_path, kind, at):
    def run(directory, at=None, resume="never"):
        inf = Interrupt([], at)
        with tf.Graph().as_default():
            fix_rng_seed(3)
            saver = ModelSaver(checkpoint_dir=str(tmp_path / directory))
            # behind the runner, so that nothing has been saved yet where the run is cut
            callbacks = [InferenceRunner(kind(batches(shuffle=True)), inf), saver]
            try:
                train(callbacks, max_epoch=4, resume=resume)
            except TrainingInterrupted:
                assert at is not None
        return inf

    whole = run("whole")
    assert len({str(each) for each in whole.notes}) == 4  # other orders each time
    begun = run("cut", at)
    resumed = run("cut", resume="must")
    assert begun.notes == whole.notes[:1]
    assert begun.notes + resumed.notes == whole.notes
    assert resumed.loaded == {"validations": 1, "batches": 3}


class Stuck(FlowOf):
    """Gives a batch, and then waits for what ends it."""

    def __init__(self):
        super().__init__(None, 2)
        self.wait = threading.Event()

    def __iter__(self):
        yield [X, X]
        threading.Timer(0.2, os.kill, [os.getpid(), signal.SIGINT]).start()
        self.wait.wait(60)
        yield [X, X]

    def close(self):
        self.wait.set()


@pytest.mark.parametrize("kind", [FeedInput, QueueInput])
def test_an_interrupt_ends_a_validation_that_waits_for_data(kind):
    begin = time.monotonic()
    with pytest.raises(TrainingInterrupted):
        train([InferenceRunner(kind(Stuck()), Collect())])
    assert time.monotonic() - begin < 20


class Validating(MiniTrainer):
    """Has a tower function, of a single input."""

    def build_inference_towers(self, source, towers, tower_func=None):
        func = TowerFunc(
            lambda x: tf.reduce_sum(x, name="sum"), [tf.TensorSpec([None], tf.float32, "x")]
        )
        callbacks = source.setup(func.input_signature)
        for name, _ in towers:
            with tf.name_scope(None), TowerContext(name, is_training=False):
                func(*source.get_input_tensors())
        return [func.towers[name] for name, _ in towers], callbacks


class TestInferenceRunner(CallbackContract):
    make_trainer = Validating
    scopes = ["InferenceTower"]

    def make_callback(self):
        return InferenceRunner(DataFromList([[X]]), ScalarStats("sum"))


class TestDataParallelInferenceRunner(CallbackContract):
    make_trainer = Validating
    towers = ["InferenceTower0", "InferenceTower1"]
    scopes = [*towers, "EMA", "QueueInput", "input_queue", "input_queue_size", "summaries"]

    def make_callback(self):
        return DataParallelInferenceRunner(DataFromList([[X]]), ScalarStats("sum"), 2)
