import numpy as np
import pytest

from tensorpack.callbacks import (
    CheckNumerics,
    DumpTensors,
    PeriodicTrigger,
    ProcessTensors,
    RunOp,
    RunUpdateOps,
)
from tensorpack.callbacks.hooks import sees_runs
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer, log_directory, log_lines, when
from tests.contracts.callback import contract_of

TestCheckNumerics = contract_of(lambda: CheckNumerics(run_step=True))
TestDumpTensors = contract_of(lambda: DumpTensors(["cost"]))
TestProcessTensors = contract_of(lambda: ProcessTensors(["cost"], lambda cost: None))
TestRunOp = contract_of(lambda: RunOp(lambda: tf.no_op("nothing")))
TestRunUpdateOps = contract_of(RunUpdateOps)


def counter():
    return tf.get_variable("counter", [], tf.int32, tf.zeros_initializer(), trainable=False)


#       run_before, as_trigger, step, before | steps of epoch 1 | of epoch 2
@pytest.mark.parametrize(
    "times, counts",
    [
        ((True, True, False), [1, 1, 1, 1, 2, 2, 2]),
        ((False, True, False), [0, 0, 0, 0, 1, 1, 1]),
        ((True, False, False), [1, 1, 1, 1, 1, 1, 1]),
        ((False, False, True), [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_the_op_runs_when_it_should(times, counts):
    variable, found = counter(), []

    def read(callback):
        found.append(callback.trainer.sess.run(variable))

    callback = RunOp(lambda: tf.assign_add(variable, 1, name="count"), *times)
    reading = when(before_train=read, trigger_step=read)
    MiniTrainer([callback, reading], steps_per_epoch=3, max_epoch=2).train()
    assert found == counts


def test_it_says_so_each_time_and_its_name_shows_where_it_is(capsys):
    callback = RunOp(lambda: tf.no_op("update_target_network"), verbose=True)
    MiniTrainer([PeriodicTrigger(callback, every_k_steps=2)], steps_per_epoch=4).train()
    line = "Running Op PeriodicTrigger/RunOp/update_target_network ..."
    assert log_lines(capsys) == [line] * 3


def test_an_op_can_be_given_itself(capsys):
    MiniTrainer([RunOp(tf.no_op("nothing"), run_as_trigger=False, verbose=True)]).train()
    assert log_lines(capsys) == ["Running Op nothing ..."]


def test_the_op_has_its_name_of_2017(capsys):
    callback = RunOp(setup_func=lambda: tf.no_op("nothing"), run_as_trigger=False, verbose=True)
    MiniTrainer([callback]).train()
    assert log_lines(capsys) == ["Running Op RunOp/nothing ..."]


def test_update_ops_run_with_each_step(capsys):
    variable = counter()
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(variable, 1).op)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.no_op())
    trainer = MiniTrainer([RunUpdateOps()], steps_per_epoch=3)
    with trainer.session() as sess:
        trainer.callbacks.before_train()
        trainer.run_epoch(1)
        assert sess.run(variable) == 3
    assert log_lines(capsys) == ["Applying UPDATE_OPS collection of 2 ops."]


def test_without_update_ops_no_word_is_said_and_no_op_is_run(capsys):
    callback = RunUpdateOps()
    MiniTrainer([callback]).train()
    assert log_lines(capsys) == []
    assert not sees_runs(callback)


def test_values_are_handed_to_the_function():
    tf.constant([1, 2], name="pair")
    tf.constant(3.0, name="three")
    seen = []
    MiniTrainer([ProcessTensors(["pair", "three:0"], lambda *values: seen.append(values))]).train()
    assert len(seen) == 2
    assert seen[0][0].tolist() == [1, 2] and seen[0][1] == 3.0


def test_tensors_of_any_name_and_strings_are_dumped(tmp_path):
    tf.constant([1, 2], name="allow_pickle"), tf.constant(3, name="file")
    tf.constant(["a", "bc"], name="text")
    with log_directory(tmp_path):
        MiniTrainer([DumpTensors(["allow_pickle", "file", "text"])]).train()
    assert {path.name for path in tmp_path.iterdir()} == {"DumpTensor-1.npz", "DumpTensor-2.npz"}
    with np.load(str(tmp_path / "DumpTensor-2.npz")) as archive:
        found = {name: archive[name].tolist() for name in archive.files}
    assert found == {"allow_pickle": [1, 2], "file": 3, "text": [b"a", b"bc"]}


def test_a_bad_variable_is_named():
    weight = tf.get_variable("layer/W", [2], initializer=tf.ones_initializer())
    train_op = tf.assign(weight, [1.0, np.nan]).op
    with pytest.raises(tf.errors.InvalidArgumentError, match="layer/W has a NaN or Inf"):
        MiniTrainer([CheckNumerics()], train_op=train_op).train()
