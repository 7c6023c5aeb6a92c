import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import CheckpointCorrupt, save_checkpoint_vars
from tensorpack.tfutils.sessinit import ExactRestore, VariableMismatch


@pytest.fixture
def prefix(tmp_path):
    target = str(tmp_path / "model-3")
    values = {"W": np.arange(6, dtype=np.float32).reshape(2, 3), "step": np.int64(3)}
    save_checkpoint_vars(values, target)
    return target


def restore(prefix, strictly=True, **changes):
    """Restores a graph with the same variables but for some changes: name -> shape and dtype."""
    shapes = {"W": ([2, 3], tf.float32), "step": ([], tf.int64), **changes}
    for name, described in shapes.items():
        if described is not None:
            tf.get_variable(name, *described, tf.zeros_initializer())
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        ExactRestore(prefix, strictly=strictly).init(sess)
        return {each.op.name: sess.run(each) for each in tf.global_variables()}


def test_all_variables_are_restored(prefix):
    values = restore(prefix)
    assert values["step"] == 3
    np.testing.assert_array_equal(values["W"], np.arange(6).reshape(2, 3))


@pytest.mark.fault_row(23)
@pytest.mark.parametrize(
    "changes, problem",
    [
        ({"step": None}, r"\nstep +int64 \[\] +extra\n"),
        ({"b": ([], tf.float32)}, r"\nb +float32 \[\] +missing\n"),
        ({"W": ([3, 2], tf.float32)}, r"\nW +float32 \[3, 2\] +float32 \[2, 3\] +does not fit\n"),
        ({"W": ([2, 3], tf.float64)}, r"\nW +float64 \[2, 3\] +float32 \[2, 3\] +does not fit\n"),
    ],
)
def test_what_differs_is_listed(prefix, changes, problem):
    with pytest.raises(VariableMismatch, match=problem):
        restore(prefix, **changes)


def test_averages_of_summaries_may_come_and_go_unless_strictly(tmp_path, capsys):
    prefix = str(tmp_path / "model-3")
    values = {"W": np.ones([2, 3], np.float32), "step": np.int64(3)}
    averages = {"EMA/both": np.float32([5, 6]), "EMA/old": np.float32([7, 8])}
    save_checkpoint_vars({**values, **averages}, prefix)
    pair = ([2], tf.float32)
    found = restore(prefix, strictly=False, **{"EMA/both": pair, "EMA/new": pair})
    assert {n: v.tolist() for n, v in found.items() if "EMA" in n} == {
        "EMA/both": [5, 6],
        "EMA/new": [0, 0],
    }
    assert found["step"] == 3
    said = capsys.readouterr().out
    assert "WRN" in said and "EMA/new begins" in said and "EMA/old is dropped" in said
    with tf.Graph().as_default(), pytest.raises(
        VariableMismatch, match=r"EMA/new .*missing\nEMA/old .*extra\n.*\"auto\""
    ):
        restore(prefix, **{"EMA/both": pair, "EMA/new": pair})


def test_the_scale_of_the_loss_comes_and_goes_with_the_precision(tmp_path, capsys):
    prefix, values = str(tmp_path / "model-3"), {"W": np.ones([2, 3], np.float32)}
    scale = {"loss_scale/scale": ([], tf.float32), "loss_scale/good_steps": ([], tf.int64)}
    save_checkpoint_vars({**values, "step": np.int64(3)}, prefix)
    assert set(restore(prefix, strictly=False, **scale)) == {"W", "step", *scale}
    assert "loss_scale/scale begins" in capsys.readouterr().out
    with tf.Graph().as_default(), pytest.raises(VariableMismatch, match='Use resume="auto"'):
        restore(prefix, **scale)


@pytest.mark.parametrize(
    "name, shape, dtype",
    [("EMA/W", [3], tf.float32), ("EMA/both", [], tf.float32), ("b/EMA", [2], tf.float32)],
)
def test_what_is_no_average_of_a_summary_must_match(prefix, name, shape, dtype):
    with pytest.raises(VariableMismatch, match=f"{name} .*missing"):
        restore(prefix, strictly=False, **{name: (shape, dtype)})


def test_a_damaged_checkpoint(prefix):
    with open(prefix + ".data-00000-of-00001", "r+b") as file:
        file.truncate(5)
    with pytest.raises(CheckpointCorrupt):
        restore(prefix)
