import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.input_source.component import Component


def component(dtype=tf.float32, shape=(None, 3)):
    return Component(1, tf.TensorSpec(shape, dtype, "image"))


@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (7, 3)])
def test_right_shapes(shape):
    image = component()
    image.convert(np.zeros(shape, np.float32))
    assert image.seen == shape


@pytest.mark.parametrize(
    "shape, message",
    [
        ((3,), "1 dimensions instead of 2"),
        ((2, 3, 1), "3 dimensions instead of 2"),
        ((2, 4), "along axis 1 is 4 instead of 3"),
        ((), "0 dimensions instead of 2"),
    ],
)
def test_wrong_shapes(shape, message):
    image = component()
    with pytest.raises(ValueError, match=message):
        image.convert(np.zeros(shape, np.float32))
    assert image.seen is None


def test_any_shape():
    anything = component(shape=None)
    assert anything.expected == "float32 of any shape"
    for shape in (), (2,), (3, 4, 5):
        assert anything.convert(np.zeros(shape, np.float32)).shape == shape


def test_lists_and_numbers():
    assert component().convert([[1.0, 2.0, 3.0]]).tolist() == [[1.0, 2.0, 3.0]]
    scalar = component(tf.int32, []).convert(7)
    assert (scalar.dtype, scalar.shape, int(scalar)) == (np.int32, (), 7)


@pytest.mark.parametrize(
    "value",
    [
        None,
        [[1.0, None, 2.0]],
        np.array([[1, 2, None]], object),
        [[1.0, 2.0, 3.0], [1.0]],
        [[object(), 1.0, 2.0]],
        np.ma.MaskedArray(np.zeros([1, 3]), mask=[[True, False, False]]),
        [[2**70, 1, 2]],
        {"a": 1},
    ],
)
def test_what_holds_no_numbers(value):
    with pytest.raises(TypeError):
        component().convert(value)


def test_a_tensor_is_no_value():
    with pytest.raises(TypeError, match="numpy makes no array of it|array of objects"):
        component().convert(tf.zeros([1, 3]))


def test_strings_are_looked_at_each_time():
    names = component(tf.string, [None])
    assert names.convert(["a", b"b"]).tolist() == ["a", b"b"]
    assert names.seen is None
    with pytest.raises(TypeError, match="there is None among them"):
        names.convert(np.array(["a", None], object))
    with pytest.raises(ValueError, match="dimensions"):
        names.convert("a")


def test_a_narrowing_is_logged_once(logged):
    image = component()
    for _ in range(3):
        image.convert(np.zeros([2, 3]))
    assert len(logged) == 1
    assert "float64 in component 1 ('image') where the model takes float32" in logged[0]


def test_a_widening_is_not_logged(logged):
    component(tf.int64, [None]).convert(np.zeros(2, np.int8))
    component().convert(np.zeros([2, 3], np.uint8))
    assert logged == []
