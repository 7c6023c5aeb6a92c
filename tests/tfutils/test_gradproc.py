"""Tests of the gradient processors, each on gradients of known values."""

import functools

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.gradproc import (
    CheckGradient,
    FilterNoneGrad,
    GlobalNormClip,
    GradientProcessor,
    MapGradient,
    PrintGradient,
    ScaleGradient,
    SummaryGradient,
)
from tensorpack.tfutils.summary import MOVING_SUMMARY_OPS_KEY
from tensorpack.tfutils.tower import TowerContext


def grads_of(**values):
    """A list of (gradient, variable), with variables of these names."""
    grads = []
    for name, value in sorted(values.items()):
        variable = tf.get_variable(name, np.shape(value or []))
        grads.append((None if value is None else tf.constant(value), variable))
    return grads


def names(grads):
    return [variable.op.name for _, variable in grads]


def values(session, grads):
    return [np.asarray(value).tolist() for value in session.run([grad for grad, _ in grads])]


def sparse_grad(rows, name="table"):
    """A gradient for rows 0 and 2 of a table of 4, with the table."""
    slices = tf.IndexedSlices(tf.constant(rows), tf.constant([0, 2]), tf.constant([4, 1]))
    return slices, tf.get_variable(name, [4, 1])


def test_ops_stay_in_one_name_scope_however_often_it_runs():
    class Double(GradientProcessor):
        def __init__(self):
            pass  # forgets the base class, as a user may

        def _process(self, grads):
            return [(tf.multiply(g, 2, name="twice"), v) for g, v in grads]

    processor = Double()
    grads = grads_of(a=1.0)
    tf.constant(0, name="Double")  # the name is taken, so the scope is made unique
    seen = [processor.process(grads)[0][0].op.name for _ in range(2)]
    assert seen == ["Double_1/twice", "Double_1/twice_1"]
    with tf.Graph().as_default():
        assert processor.process(grads_of(a=1.0))[0][0].op.name == "Double/twice"
    with pytest.raises(NotImplementedError, match="GradientProcessor must override _process"):
        GradientProcessor().process([])


def test_filter_none_drops_and_names_what_it_drops(log_lines):
    grads = grads_of(a=1.0, b=None, c=None)
    assert names(FilterNoneGrad().process(grads)) == ["a"]
    assert log_lines == [("warn", "No gradient w.r.t. 2 variables: b, c")]
    assert names(FilterNoneGrad(verbose=False).process(grads)) == ["a"]
    assert len(log_lines) == 1


def clip_and_summarise(grads, limit):
    """Clips, and lets `SummaryGradient` compute its root mean squares; returns both."""
    clipped = SummaryGradient().process(GlobalNormClip(limit).process(grads))
    ops = tf.get_default_graph().get_operations()
    scalars = [op.outputs[0] for op in ops if op.name.startswith("SummaryGradient/")]
    return clipped, [each for each in scalars if each.op.name.endswith("/rms")]


# the joint norm is 13
@pytest.mark.parametrize("limit", [1.0, 13.0, 1e6])
def test_clipping_below_at_and_above_the_limit(session, limit):
    raw = {"a": [3.0, 4.0], "b": [[12.0], [0.0]]}
    clipped, rms = clip_and_summarise(grads_of(**raw, c=None), limit)
    assert names(clipped) == ["a", "b", "c"] and clipped[2][0] is None
    found, sizes = session().run([[grad for grad, _ in clipped[:2]], rms])
    for name, clipped_values, size in zip(sorted(raw), found, sizes):
        expected = np.float32(raw[name]) * limit / max(13.0, limit)
        np.testing.assert_allclose(clipped_values, expected, rtol=1e-6)
        np.testing.assert_allclose(size, np.sqrt(np.mean(np.square(expected))), rtol=1e-6)


def test_size_of_a_clipped_sparse_gradient_is_that_of_its_rows(session):
    grads = [sparse_grad([[3.0], [4.0]]), *grads_of(other=12.0)]
    clipped, (rms, other) = clip_and_summarise(grads, 6.5)
    assert isinstance(clipped[0][0], tf.IndexedSlices)
    sess = session()
    np.testing.assert_allclose(sess.run(clipped[0][0].values), [[1.5], [2.0]], rtol=1e-6)
    np.testing.assert_allclose(sess.run([rms, other]), [3.125**0.5, 6.0], rtol=1e-6)


def test_clipping_of_gradients_whose_norm_float16_cannot_hold(session):
    grads = [(tf.ones([120000], tf.float16), tf.get_variable("a", [120000], tf.float16))]
    clipped, (size, other) = clip_and_summarise(grads + grads_of(b=400.0), 100.0)
    assert clipped[0][0].dtype == tf.float16
    found = session().run([clipped[0][0], clipped[1][0], size, other])  # the joint norm is 529.15
    np.testing.assert_allclose(found[0], np.full(120000, 0.18898224), rtol=1e-3)
    np.testing.assert_allclose(found[1:], [75.592895, 0.18898224, 75.592895], rtol=1e-5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_norm_that_is_not_finite_makes_all_nan(session, bad):
    clipped, rms = clip_and_summarise(grads_of(a=[1.0, bad], b=1.0), 10.0)
    for each in session().run([gradient for gradient, _ in clipped] + rms):
        assert np.isnan(each).all()


def test_a_gradient_changed_after_the_clipping_is_measured_again(session):
    clipped = GlobalNormClip(1.0).process(grads_of(a=[3.0, 4.0]))
    SummaryGradient().process(ScaleGradient(("a", 10), verbose=False).process(clipped))
    rms = tf.get_default_graph().get_tensor_by_name("SummaryGradient/a/rms:0")
    np.testing.assert_allclose(session().run(rms), 10 / 2**0.5, rtol=1e-6)


@pytest.mark.parametrize(
    "func",
    [
        lambda grad: grad * 2,
        lambda grad, factor=2: grad * factor,
        lambda grad, var: grad * (2 if var.op.name == "ab" else 0),
        lambda *args: args[0] * 2,
        functools.partial(lambda factor, grad: grad * factor, 2),
    ],
)
def test_map_gradient_takes_functions_of_one_and_two_arguments(session, func):
    mapped = MapGradient(func, "a.").process(grads_of(a=1.0, ab=3.0, cab=1.0))
    assert values(session(), mapped) == [1.0, 6.0, 1.0]


def test_map_gradient_drops_what_maps_to_none_and_warns_when_nothing_matches(log_lines):
    grads = MapGradient(lambda grad: None, "[ab]").process(grads_of(a=1.0, b=None, c=1.0))
    assert names(grads) == ["b", "c"]
    assert log_lines == []
    assert MapGradient(lambda grad: None, "conv.*").process(grads) == grads
    assert [level for level, text in log_lines if "'conv.*'" in text] == ["warn"]


def test_summary_gradient_has_a_histogram_and_an_average_for_each_variable(session):
    grads = [*grads_of(W=[3.0, 4.0]), sparse_grad([[6.0], [8.0]], name="rows")]
    assert SummaryGradient().process(grads) == grads
    sess = session()
    sess.run(tf.get_collection(MOVING_SUMMARY_OPS_KEY))
    kinds = ["W-grad", "W/rms", "rows-grad", "rows/rms"]
    values = [
        value
        for summary in sess.run(tf.get_collection(tf.GraphKeys.SUMMARIES))
        for value in tf.Summary.FromString(summary).value
    ]
    assert sorted(each.tag for each in values) == [f"SummaryGradient/{each}" for each in kinds]
    averages = [f"summaries/SummaryGradient/{each}/rms/average:0" for each in ("W", "rows")]
    np.testing.assert_allclose(sess.run(averages), [12.5**0.5, 50**0.5], rtol=1e-6)


def test_summary_gradient_once_for_a_variable_and_only_in_the_main_tower(session):
    grads = grads_of(W=1.0, b=1.0)
    with TowerContext("tower1", is_training=True, index=1):
        SummaryGradient().process(grads)
    assert tf.get_collection(MOVING_SUMMARY_OPS_KEY) == []
    SummaryGradient("W", collections=["mine"]).process(grads)
    SummaryGradient("W").process(grads)
    assert len(tf.get_collection(MOVING_SUMMARY_OPS_KEY)) == 1
    assert len(tf.get_collection("mine")) == 2
    assert tf.get_collection(tf.GraphKeys.SUMMARIES) == []


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_check_gradient_names_the_variable(session, bad):
    checked = CheckGradient().process(grads_of(a=1.0, b=bad))
    sess = session()
    assert sess.run(checked[0][0]) == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="gradient of b is not finite"):
        sess.run(checked[1][0])


def test_scale_gradient_takes_the_first_match_and_drops_at_zero(session, log_lines):
    processor = ScaleGradient([("fc/.*", 2), (".*/b", 0), ("conv/.*", 0.5)])
    grads = grads_of(**{"fc/b": 1.0, "conv/b": 1.0, "conv/W": 1.0, "other": 1.0})
    scaled = processor.process(grads)
    found = dict(zip(names(scaled), values(session(), scaled)))
    assert found == {"fc/b": 2.0, "conv/W": 0.5, "other": 1.0}
    assert log_lines == [
        ("detail", "Apply lr multiplier 0.5 for conv/W"),
        ("detail", "Apply lr multiplier 0 for conv/b"),
        ("detail", "Apply lr multiplier 2 for fc/b"),
    ]


@pytest.mark.parametrize("quiet", [{"verbose": False}, {"log": False}])
def test_scale_gradient_of_one_pair_scales_sparse_gradients_quietly(session, log_lines, quiet):
    ((scaled, _),) = ScaleGradient(("table", 3), **quiet).process([sparse_grad([[1.0], [2.0]])])
    assert isinstance(scaled, tf.IndexedSlices)
    assert session().run(scaled.values).tolist() == [[3.0], [6.0]]
    assert log_lines == []


def test_print_gradient_prints_the_matching_ones(session, capfd):
    printed = PrintGradient("a").process(grads_of(a=3.0, b=4.0))
    assert values(session(), printed) == [3.0, 4.0]
    error = capfd.readouterr().err
    assert "Gradient of a: [][3][3][3]" in error
    assert "Gradient of b" not in error
