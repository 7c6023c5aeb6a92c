import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import save_checkpoint_vars
from tensorpack.tfutils.loss_scale import LossScaleOptimizer
from tensorpack.tfutils.optimizer import AccumGradOptimizer
from tensorpack.tfutils.sessinit import ExactRestore, SaverRestore, VariableMismatch


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
    of_0_8 = {"EMA/cost": np.float32(3), "EMA/cost/biased": np.float32(3)}
    save_checkpoint_vars({**values, **averages, **of_0_8}, prefix)
    pair = ([2], tf.float32)
    options = {"EMA/both": pair, "EMA/new": pair, "EMA/cost": pair}
    found = restore(prefix, strictly=False, **options)
    assert {n: v.tolist() for n, v in found.items() if "EMA" in n} == {
        "EMA/both": [5, 6],
        "EMA/cost": [0, 0],
        "EMA/new": [0, 0],
    }
    assert found["step"] == 3
    said = capsys.readouterr().out
    assert "WRN" in said and "EMA/new begins" in said and "EMA/old is dropped" in said
    with tf.Graph().as_default(), pytest.raises(
        VariableMismatch, match=r"(?s)EMA/new .*missing\nEMA/old .*extra\n.*\"auto\""
    ):
        restore(prefix, **options)


def test_the_scale_of_the_loss_comes_and_goes_with_the_precision(tmp_path, capsys):
    prefix, values = str(tmp_path / "model-3"), {"W": np.ones([2, 3], np.float32)}
    scale = {"loss_scale/scale": ([], tf.float32), "loss_scale/good_steps": ([], tf.int64)}
    save_checkpoint_vars({**values, "step": np.int64(3)}, prefix)
    assert set(restore(prefix, strictly=False, **scale)) == {"W", "step", *scale}
    assert "loss_scale/scale begins" in capsys.readouterr().out
    with tf.Graph().as_default(), pytest.raises(
        VariableMismatch, match='To resume the run, use resume="auto"'
    ):
        restore(prefix, **scale)


def minimize(*wrappers):
    """Builds a variable for each wrapper, with an Adam that it wraps; returns the betas' powers."""
    for number, wrap in enumerate(wrappers):
        with tf.variable_scope("", use_resource=True):
            w = tf.get_variable(f"w{number}", [])
        wrap(tf.train.AdamOptimizer()).minimize(w * w, var_list=[w])
    return [each for each in tf.global_variables() if "power" in each.op.name]


def zeros():
    return {v.op.name: np.zeros([], v.dtype.as_numpy_dtype) for v in tf.global_variables()}


def plain(opt):
    return opt


def accumulating(opt):
    return AccumGradOptimizer(opt, 2)


@pytest.mark.parametrize(
    "wrappers, scopes",
    [
        ([plain], ["cond"]),
        ([LossScaleOptimizer], ["AccumGrad/cond"]),
        ([accumulating, accumulating], ["AccumGrad/cond/cond", "AccumGrad_1/cond/cond"]),
    ],
)
def test_powers_of_betas_that_were_saved_from_a_branch_are_found(tmp_path, wrappers, scopes):
    """By their names on TensorFlow 1, in which the precision may have been another one."""
    powers = minimize(*wrappers)
    names = [f"beta{i}_power{number}" for number in ("", "_1") for i in (1, 2)]
    assert [each.op.name for each in powers] == names[: len(powers)]
    values = {name: each for name, each in zeros().items() if not name.startswith("loss_scale")}
    for number, each in enumerate(powers):
        del values[each.op.name]
        values[f"{scopes[number // 2]}/beta{number % 2 + 1}_power"] = np.float32(number)
    prefix = str(tmp_path / "model-3")
    save_checkpoint_vars(values, prefix)
    for init in ExactRestore(prefix, strictly=False), SaverRestore(prefix):
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            init.init(sess)
            assert sess.run(powers) == list(range(len(powers)))


def test_which_optimizer_has_a_power_of_a_beta_is_not_guessed(tmp_path):
    minimize(accumulating, plain)
    values = zeros()
    for i in 1, 2:
        values[f"AccumGrad/cond/beta{i}_power"] = values.pop(f"beta{i}_power_1")
    prefix = str(tmp_path / "model-3")
    save_checkpoint_vars(values, prefix)
    with tf.Session() as sess, pytest.raises(VariableMismatch, match="beta1_power_1 .* missing"):
        ExactRestore(prefix, strictly=False).init(sess)


@pytest.mark.parametrize(
    "name, shape, dtype",
    [("EMA/W", [3], tf.float32), ("EMA/both", [], tf.float32), ("b/EMA", [2], tf.float32)],
)
def test_what_is_no_average_of_a_summary_must_match(prefix, name, shape, dtype):
    with pytest.raises(VariableMismatch, match=f"{name} .*missing"):
        restore(prefix, strictly=False, **{name: (shape, dtype)})
