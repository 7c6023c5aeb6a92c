import os
import re
import shutil
import sys
import time
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest

from tensorpack.callbacks import (
    CallbackFactory,
    JSONWriter,
    MaxSaver,
    MinSaver,
    ModelSaver,
    NonFiniteError,
    PeriodicTrigger,
    TFEventWriter,
)
from tensorpack.compat import run_after
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.tfutils.checkpoint import verify
from tensorpack.train import SimpleTrainer
from tensorpack.utils import logger
from tensorpack.utils._directory_lock import DirectoryLock
from tensorpack.utils.checkpoints import DirectoryReplaced
from tests.callbacks.driver import MiniTrainer, log_directory, log_lines, when
from tests.contracts.callback import contract_of
from tests.helpers import TinyModel, config

TestModelSaver = contract_of(ModelSaver)
TestAsynchronousModelSaver = contract_of(lambda: ModelSaver(asynchronous=True))
TestMaxSaver = contract_of(lambda: MaxSaver("cost"))
TestMinSaver = contract_of(lambda: MinSaver("cost"))


def run(callbacks, directory=None, **options):
    """Trains a weight that is 1 after step 1, 2 after step 2 ..., two steps an epoch."""
    with tf.Graph().as_default(), log_directory(directory) if directory else nullcontext():
        weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
        train_op = tf.assign_add(weight, 1.0).op
        return MiniTrainer(callbacks, train_op=train_op, **options).train()


def saved(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def checkpoints(directory):
    return sorted(
        (name[: -len(".index")] for name in os.listdir(str(directory)) if name.endswith(".index")),
        key=lambda name: int(re.sub(r"\D", "", name) or 0),
    )


def test_a_model_is_saved_after_each_epoch(tmp_path, capsys):
    with log_directory(tmp_path):
        saver = ModelSaver()
    run([saver], max_epoch=3)
    assert log_lines(capsys) == [f"Model saved to {tmp_path}/model-{step}." for step in (2, 4, 6)]
    assert checkpoints(tmp_path) == ["model-2", "model-4", "model-6"]
    assert saved(tmp_path / "model-4") == {"weight": 4.0, "global_step": 4}
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model-6")


@pytest.mark.fault_row(54)
def test_relative_paths_stay_where_they_are_when_the_working_directory_changes(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    paths = {"checkpoint_dir": "train_log/run"}
    callbacks = [PUTTING, ModelSaver(**paths), MinSaver("cost", filename="least", **paths)]
    monitors = [JSONWriter("train_log/stats"), TFEventWriter("train_log/events")]
    moving = when(setup_graph=lambda _: os.chdir("elsewhere"))
    run([moving, *callbacks], monitors=monitors)
    assert f"Model saved to {tmp_path}/train_log/run/model-2." in log_lines(capsys)
    assert os.listdir(".") == [] and sorted(os.listdir("../train_log")) == [
        "events",
        "run",
        "stats",
    ]
    assert checkpoints(tmp_path / "train_log" / "run") == ["least", "model-2"]
    os.rename("../train_log", "moved")
    assert tf.train.latest_checkpoint("moved/run") == "moved/run/model-2"


@pytest.mark.fault_row(52)
def test_a_directory_that_tensorflow_cannot_write_to_is_refused_at_once(tmp_path):
    directory = os.path.join(str(tmp_path), os.fsdecode(b"caf\xe9"))
    for kind in (ModelSaver, partial(MinSaver, "value"), TFEventWriter):
        with pytest.raises(ValueError, match=r"caf\\xe9' is not UTF-8.*another name"):
            kind(logdir=directory) if kind is TFEventWriter else kind(checkpoint_dir=directory)
    assert os.listdir(str(tmp_path)) == []


def test_there_is_a_metagraph(tmp_path):
    run([ModelSaver(checkpoint_dir=str(tmp_path))], max_epoch=2)
    metas = [name for name in os.listdir(str(tmp_path)) if name.endswith(".meta")]
    assert len(metas) == 1 and re.match(r"graph-\d{4}-\d{6}\.meta$", metas[0])
    with tf.Graph().as_default(), tf.Session() as sess:
        saver = tf.train.import_meta_graph(str(tmp_path / metas[0]))
        saver.restore(sess, str(tmp_path / "model-4"))
        (restored,) = tf.trainable_variables()
        assert sess.run(restored) == 4.0


def test_those_of_the_run_that_is_continued_count(tmp_path):
    run([ModelSaver(2, checkpoint_dir=str(tmp_path))], max_epoch=2)
    run([ModelSaver(2, checkpoint_dir=str(tmp_path))], starting_epoch=3, max_epoch=3, init_step=4)
    assert checkpoints(tmp_path) == ["model-4", "model-6"]


def test_variables_that_later_callbacks_add_are_saved(tmp_path):
    def add(_):
        tf.get_variable("late", [], initializer=tf.ones_initializer())

    run([PeriodicTrigger(ModelSaver(), every_k_epochs=1), when(setup_graph=add)], tmp_path)
    assert saved(tmp_path / "model-2")["late"] == 1.0


def test_some_collections_only(tmp_path):
    run([ModelSaver(var_collections="trainable_variables")], tmp_path)
    assert set(saved(tmp_path / "model-2")) == {"weight"}


def test_an_empty_collection_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no variables to save in mine"):
        run([ModelSaver(var_collections=["mine"])], tmp_path)


PUTTING = CallbackFactory(trigger=lambda cb: cb.trainer.monitors.put_scalar("cost", 1))


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Lets the program look as a script `mnist.py` in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "/somewhere/mnist.py", raising=False)
    yield tmp_path / "train_log"
    logger.close_logger_dir()


def test_without_a_log_directory_one_is_named_after_the_script(script, capsys):
    run([PUTTING, ModelSaver()], monitors=[TFEventWriter(), JSONWriter()])
    names = sorted(os.listdir(str(script / "mnist")))
    assert {"checkpoint", "log.log", "model-2.index", "stats.json"} <= set(names)
    assert any(name.startswith("events.out") for name in names)
    line = f"ModelSaver keeps its checkpoints in {script}/mnist: no log directory had been set."
    assert line in log_lines(capsys)


def test_without_a_script_to_name_it_after_it_does_not_start(monkeypatch):
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    with pytest.raises(RuntimeError, match="ModelSaver does not know where"):
        run([ModelSaver()])


def test_the_arguments_of_2017(tmp_path):
    run(
        [ModelSaver(keep_recent=2, keep_freq=9, var_collections="variables")], tmp_path, max_epoch=4
    )
    assert checkpoints(tmp_path) == ["model-6", "model-8"]
    assert ModelSaver(var_collections="variables").saves_all
    with pytest.raises(TypeError, match="'keep_recent' and 'max_to_keep'"):
        ModelSaver(max_to_keep=3, keep_recent=2)
    with pytest.raises(TypeError, match="got 2. The fifth argument of 2017 was keep_recent"):
        ModelSaver(10, 0.5, None, None, 2)


def test_a_run_whose_directory_was_replaced_ends_with_an_error(tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    locks = [DirectoryLock(str(log))]

    def replace(callback):
        if callback.epoch_num == 2:
            saver.wait()
            log.rename(tmp_path / "renamed")
            log.mkdir()
            locks.append(DirectoryLock(str(log)))

    saver = ModelSaver(checkpoint_dir=str(log), asynchronous=True)
    with pytest.raises(DirectoryReplaced, match="lock is not the one .* renamed"):
        run([when(before_epoch=replace), saver], max_epoch=4)
    assert os.listdir(str(log)) == [".lock"]
    for lock in locks:
        lock.release()
    assert checkpoints(tmp_path / "renamed") == ["model-2"]


def putting(*values):
    def put(callback):
        value = values[callback.epoch_num - 1]
        if value is not None:
            callback.trainer.monitors.put_scalar("val/error", value)

    return when(trigger_epoch=put)


def best(directory, kind, values, before=(), **options):
    callbacks = [*before, ModelSaver(), putting(*values), kind("val/error", **options)]
    run(callbacks, directory, max_epoch=len(values))


@pytest.mark.parametrize(
    "kind, values, name, step",
    [
        (MinSaver, [0.0, -1.0, 2.0], "min-val-error", 4),
        (MinSaver, [1.0, 0.0, 0.0], "min-val-error", 4),
        (MaxSaver, [3.0, 1.0, 2.0], "max-val-error", 2),
        (MaxSaver, [float("nan"), 1.0, float("nan")], "max-val-error", 4),
        (MinSaver, [-float("inf"), 2.0, 1.0], "min-val-error", 6),
    ],
)
def test_the_best_is_kept(tmp_path, kind, values, name, step):
    best(tmp_path, kind, values)
    assert saved(tmp_path / name)["weight"] == step
    verify(str(tmp_path / name))
    assert not [each for each in os.listdir(str(tmp_path)) if "unfinished" in each]
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model-6")


@pytest.mark.parametrize("values, step", [([3.0, 1.0, 2.0], 4), ([3.0, 2.0, 1.0], 6)])
@pytest.mark.parametrize("first", [True, False])
def test_it_may_stand_before_what_computes_the_value(tmp_path, capsys, values, step, first):
    kept, others = [MinSaver("val/error")], [ModelSaver()]
    callbacks = [*kept, *others] if first else [*others, *kept]
    run([*callbacks, putting(*values)], tmp_path, max_epoch=3)
    assert saved(tmp_path / "min-val-error")["weight"] == step
    assert not any("no model was saved" in line for line in log_lines(capsys))


def test_it_may_stand_before_the_saver_also_of_a_run_that_is_resumed_between_them(tmp_path, capsys):
    def train_both(max_epoch, **options):
        kept = MinSaver("val/error", checkpoint_dir=str(tmp_path))
        saver = ModelSaver(checkpoint_dir=str(tmp_path))
        train([putting(1.0, 2.0), kept, saver], max_epoch, **options)
        verify(kept.target)
        return kept.best

    assert train_both(1) == (2, 1.0)
    for path in tmp_path.glob("min-*"):
        path.unlink()
    assert train_both(2, resume=str(tmp_path / "model-2")) == (2, 1.0)
    assert not any("no model was saved" in line for line in log_lines(capsys))


def test_it_says_so_and_the_name_can_be_given(tmp_path, capsys):
    best(tmp_path, MinSaver, [3.0, 4.0], filename="best")
    line = "Model at global_step=2 with minimum val/error=3 saved."
    assert [each for each in log_lines(capsys) if "minimum" in each] == [line]
    assert saved(tmp_path / "best")["weight"] == 2.0


def test_a_value_without_its_checkpoint_is_a_warning(tmp_path, capsys):
    run([ModelSaver()], tmp_path, max_epoch=3)  # another run, whose model-6 is not of this one
    callbacks = [
        PeriodicTrigger(ModelSaver(), every_k_epochs=2),
        putting(None, 3.0, 1.0),
        MinSaver("val/error"),
    ]
    capsys.readouterr()
    run(callbacks, tmp_path, max_epoch=3)
    assert saved(tmp_path / "min-val-error")["weight"] == 4.0
    lines = log_lines(capsys)
    assert any("is from step 6, of which no model was saved" in line for line in lines)


def test_a_value_that_never_came_is_an_error_that_names_those_that_did(tmp_path):
    said = "did nothing .* Did you mean 'val/error'.* Those that have: val/error"
    with pytest.raises(RuntimeError, match=said):
        run([ModelSaver(), putting(1.0), MaxSaver("val_error")], tmp_path)


def test_a_run_that_ends_before_the_first_value_is_asked_for_is_none(tmp_path):
    savers = [PeriodicTrigger(cb, every_k_epochs=2) for cb in (ModelSaver(), MaxSaver("val/error"))]
    assert run([putting(1.0), *savers], tmp_path).global_step == 2


@pytest.mark.parametrize("kept, said", [(1, "; 2 are kept, "), (-1, "; all of them")])
def test_it_says_once_what_the_checkpoints_will_take(tmp_path, capsys, monkeypatch, kept, said):
    monkeypatch.setattr("tensorpack.callbacks.saver._MUCH", 1)
    run([ModelSaver(max_to_keep=kept)], tmp_path, max_epoch=3)
    (line,) = [line for line in log_lines(capsys) if "A checkpoint takes" in line]
    assert said in line


def test_no_checkpoint_at_all_is_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="needs a ModelSaver beside it"):
        run([putting(1.0), MinSaver("val/error")], tmp_path)


def test_strings_are_saved_beside_the_training(tmp_path):
    given = {"words": [b"cat", b"dogs\0"], "word": b"ab\0"}

    def make(callback):
        for name, value in given.items():
            tf.get_variable(name, initializer=tf.constant(value), trainable=False)

    run([when(setup_graph=make), ModelSaver(asynchronous=True)], tmp_path)
    values = saved(tmp_path / "model-2")
    assert {name: np.array(values[name], object).tolist() for name in given} == given


def test_a_variable_that_grows_is_saved_beside_the_training(tmp_path):
    def make(callback):
        options = {"use_resource": True, "trainable": False, "name": "rows"}
        with tf.name_scope(None):
            rows = tf.Variable(np.ones([1, 2]), shape=tf.TensorShape([None, 2]), **options)
        callback.grow = rows.assign(tf.concat([rows, rows], 0)).op

    growing = when(setup_graph=make, trigger_epoch=lambda cb: cb.trainer.sess.run(cb.grow))
    run([growing, ModelSaver(asynchronous=True)], tmp_path, max_epoch=2)
    for step in (2, 4):
        assert saved(tmp_path / f"model-{step}")["rows"].tolist() == [[1, 1]] * step


def test_trainings_on_one_server_save_beside_them(tmp_path, monkeypatch):
    server = tf.train.Server.create_local_server()  # which keeps variables, by their names
    monkeypatch.setattr(tf, "Session", partial(tf.Session, server.target))
    for name, dtype in (("first", tf.float32), ("second", tf.bool)):
        make = partial(tf.get_variable, name, [], dtype, tf.ones_initializer(), trainable=False)
        adding = when(setup_graph=lambda _, make=make: make())
        run([adding, ModelSaver(asynchronous=True)], tmp_path)
        assert saved(tmp_path / "model-2")[name] == 1


@pytest.mark.parametrize("asynchronous", [False, True])
def test_infinite_weights_never_replace_a_checkpoint(tmp_path, asynchronous):
    def add(callback):
        callback.op = tf.global_variables("weight")[0].assign(np.inf).op

    def spoil(callback):
        if callback.epoch_num == 2:
            callback.trainer.sess.run(callback.op)

    callbacks = [when(setup_graph=add, trigger_epoch=spoil), ModelSaver(asynchronous=asynchronous)]
    with pytest.raises(NonFiniteError, match="weight is not finite after global_step 4, so"):
        run(callbacks, tmp_path, max_epoch=4)
    assert checkpoints(tmp_path) == ["model-2"]
    assert saved(tmp_path / "model-2")["weight"] == 2.0
    assert not any("unfinished" in name for name in os.listdir(str(tmp_path)))


def train_best(directory, *values, max_to_keep=10, **options):
    """Trains an epoch for each value; returns the step and the value of the best."""
    kept = MinSaver("val/error", checkpoint_dir=str(directory))
    callbacks = [ModelSaver(max_to_keep, checkpoint_dir=str(directory)), putting(*values), kept]
    train(callbacks, len(values), **options)
    return kept.best


def train(callbacks, max_epoch, **options):
    options.update(model=TinyModel(), dataflow=DataFromList([[[1.0], [2.0]]] * 2))
    with tf.Graph().as_default():
        SimpleTrainer(config(callbacks, max_epoch=max_epoch, **options)).train()


@pytest.mark.parametrize(
    "first, options",
    [
        (True, {}),
        (False, {}),
        (False, {"asynchronous": True}),
        (False, {"asynchronous": True, "var_collections": "trainable_variables"}),
    ],
)
@pytest.mark.parametrize("epochs", [2, 1])
def test_a_save_that_fails_is_not_the_end_unless_it_is_the_last(
    tmp_path, capsys, first, options, epochs
):
    blocked = tmp_path / "model-2.data-00000-of-00001"
    (blocked / "in-the-way").mkdir(parents=True)
    freeing = when(trigger_epoch=lambda cb: cb.epoch_num == 1 and shutil.rmtree(str(blocked)))
    kept = MinSaver("val/error", checkpoint_dir=str(tmp_path))
    callbacks = [ModelSaver(checkpoint_dir=str(tmp_path), **options), putting(2.0, 3.0), freeing]
    callbacks.insert(0 if first else 2, kept)
    failing = pytest.raises(RuntimeError, match="The last save of the model to .* failed")
    with failing if epochs == 1 else nullcontext():
        train(callbacks, epochs)
    line = "MinSaver does nothing: val/error is from step 2, of which no model was saved."
    assert sum(each.startswith(line) for each in log_lines(capsys)) == 1
    assert checkpoints(tmp_path) == (["min-val-error", "model-4"] if epochs == 2 else [])


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_write_may_take_longer_than_an_operation_of_the_session(tmp_path, asynchronous):
    def make_slow(callback):
        slow = tf.py_func(lambda: time.sleep(0.8), [], [])
        for op in tf.get_default_graph().get_operations():
            if op.type == "SaveV2":
                run_after(op, slow)

    slowing = when(setup_graph=make_slow)
    slowing.sets_up_last = True
    saver = ModelSaver(checkpoint_dir=str(tmp_path), asynchronous=asynchronous)
    limit = tf.ConfigProto(operation_timeout_in_ms=500, allow_soft_placement=True)
    train([saver, slowing], 1, session_config=limit)
    assert checkpoints(tmp_path) == ["model-2"]


@pytest.mark.parametrize(
    "values, removed, step, said",
    [
        ([1.0, 2.0, 3.0, 4.0], "", 2, []),
        ([2.0, 1.0, 3.0, 4.0], "", 4, []),  # known when the state had been saved
        ([1.0, 2.0, 4.0, 3.0], "min-*", 2, []),  # its model is there
        (
            [1.0, 2.0, 4.0, 3.0],
            "m*[2r].*",
            4,
            ["MinSaver starts over, without the best so far, 1."],
        ),
    ],
)
def test_the_best_comes_along_to_another_directory(tmp_path, capsys, values, removed, step, said):
    first, second = tmp_path / "first", tmp_path / "second"
    train_best(first, *values[:2])
    for path in first.glob(removed) if removed else ():
        path.unlink()
    capsys.readouterr()
    train_best(second, *values, resume=str(first))
    verify(str(second / "min-val-error"))
    assert saved(second / "min-val-error")["global_step"] == step
    assert [each for each in log_lines(capsys) if "starts over" in each] == said


def test_a_run_that_goes_back_keeps_the_best_of_what_it_cuts_off(tmp_path, capsys):
    train_best(tmp_path, 3.0, 2.0, 1.0)
    capsys.readouterr()
    train_best(tmp_path, 3.0, 2.0, 4.0, resume=str(tmp_path / "model-4"))
    assert saved(tmp_path / "min-val-error-6")["global_step"] == 6
    verify(str(tmp_path / "min-val-error-6"))
    assert saved(tmp_path / "min-val-error")["global_step"] == 4
    assert any("The best of step 6 is cut off: it is now" in line for line in log_lines(capsys))


def test_a_run_that_goes_on_from_the_best_keeps_it(tmp_path):
    train_best(tmp_path, 2.0, 1.0, 5.0, 5.0, max_to_keep=2)
    options = {"max_to_keep": 2, "resume": str(tmp_path / "min-val-error")}
    assert train_best(tmp_path, 2.0, 1.0, 1.5, 5.0, 5.0, **options) == (4, 1.0)
    assert saved(tmp_path / "min-val-error")["global_step"] == 4
    assert checkpoints(tmp_path) == ["min-val-error", "model-8", "model-10"]


def test_a_damaged_checkpoint_is_not_kept_as_the_best(tmp_path, capsys):
    data = tmp_path / "model-2.data-00000-of-00001"
    damaging = when(trigger_epoch=lambda _: data.write_bytes(b""))
    best(tmp_path, MinSaver, [1.0])
    run([ModelSaver(), damaging, putting(1.0), MinSaver("val/error", filename="m")], tmp_path)
    assert not list(tmp_path.glob("m.*"))
    assert any("Cannot keep" in line and "0 bytes" in line for line in log_lines(capsys))
    verify(str(tmp_path / "min-val-error"))
