from decimal import Decimal

import numpy as np
import pytest

from tensorpack.callbacks import GraphVarParam, ObjAttrParam
from tensorpack.callbacks.param import as_hyper_param
from tensorpack.compat import tfv1 as tf


class Thing:
    exploration = 1.0


def variable(name="learning_rate", dtype=tf.float32, shape=(), **options):
    return tf.get_variable(name, shape, dtype, tf.zeros_initializer(), trainable=False, **options)


@pytest.mark.parametrize(
    "options", [{}, {"use_resource": True}, {"collections": [tf.GraphKeys.LOCAL_VARIABLES]}]
)
@pytest.mark.parametrize("name", ["learning_rate", "learning_rate:0"])
def test_a_variable_is_set_and_read(options, name):
    variable(**options)
    param = GraphVarParam(name)
    assert param.readable_name == "learning_rate"
    param.setup_graph()
    tf.get_default_graph().finalize()
    with tf.Session():
        for value in (0.25, 0.0, np.float64(1e-3)):
            param.set_value(value)
            assert param.get_value() == np.float32(value)


def test_a_variable_with_a_shape():
    variable("pair", shape=[2])
    param = GraphVarParam("pair", [2])
    param.setup_graph()
    with tf.Session():
        param.set_value([1, 2])
        assert param.get_value().tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match=r"has shape \[2\], not \[\]"):
        GraphVarParam("pair").setup_graph()


def test_a_missing_variable_is_an_error():
    with pytest.raises(ValueError, match="no variable named 'learning_rate'"):
        GraphVarParam("learning_rate").setup_graph()


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    "dtype, held, refused",
    [
        (tf.uint8, [255, 0], [256, -1, 255.5, INF, NAN]),
        (tf.int64, [2**53 + 1, -(2**63), 3.0], [2**63, float(2**63), 0.5, NAN]),
        (tf.float32, [INF, 2**70, Decimal("0.5"), np.array(0.5, object)], [1e39, "a", None, [1]]),
        (tf.float16, [1], [70000]),
        (tf.bfloat16, [1], [1e39]),
        (tf.bool, [1], [2, 0.5]),
    ],
    ids=lambda dtype: getattr(dtype, "name", ""),
)
def test_what_a_dtype_cannot_hold_is_refused(dtype, held, refused):
    variable("it", dtype, use_resource=True)
    param = GraphVarParam("it")
    param.setup_graph()
    with tf.Session():
        for value in held:
            param.set_value(value)
            assert param.get_value() == value
        for value in refused:
            with pytest.raises((TypeError, ValueError), match="The variable it "):
                param.set_value(value)
        assert param.get_value() == held[-1]


def test_an_attribute_is_set_and_read():
    thing = Thing()
    param = ObjAttrParam(thing, "exploration")
    param.set_value(0.5)
    assert thing.exploration == param.get_value() == 0.5
    assert param.readable_name == "exploration"
    assert ObjAttrParam(thing, "exploration", "epsilon").readable_name == "epsilon"


def test_a_misspelled_attribute_is_an_error():
    with pytest.raises(AttributeError, match="explorashun"):
        ObjAttrParam(Thing(), "explorashun").set_value(1)


def test_a_string_is_a_variable_and_nothing_else_is_a_param():
    assert as_hyper_param("learning_rate").readable_name == "learning_rate"
    with pytest.raises(TypeError, match="a HyperParam or the name of a variable, got int"):
        as_hyper_param(3)
