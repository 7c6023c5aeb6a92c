import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.graph_builder._utils import get_sublist_by_names, get_tensors_inputs
from tensorpack.graph_builder.input_source_base import remap_input_source
from tensorpack.input_source import FeedInput, QueueInput, StagingInput, TensorInput
from tests.contracts.input_source import InputSourceContract
from tests.input_source.run_source import hooked, numbers, running

SIGNATURE = [tf.TensorSpec([], tf.int32, name) for name in ("a", "b", "c")]


class TestARemappedInput(InputSourceContract):
    size = 3
    feedfree = False

    def make_source(self):
        return remap_input_source(FeedInput(DataFromList([[[1]]] * 3)), ["label"])


@pytest.mark.parametrize("kind", [QueueInput, StagingInput])
def test_the_named_inputs_come_from_the_source_and_the_others_are_fed(kind):
    queue = QueueInput(numbers(3))
    source = remap_input_source(queue if kind is QueueInput else StagingInput(queue), ["b"])
    assert isinstance(source, kind) and type(source).__name__ == f"Remapped{kind.__name__}"
    with running(source, SIGNATURE) as (_, sess, tensors, callbacks):
        session = hooked(sess, callbacks)
        assert tensors[0].op.name == "a"
        feed = {tensors[0]: 7, tensors[2]: 9}
        assert [session.run(tensors, feed) for _ in range(4)] == [[7, i % 3, 9] for i in range(4)]


def test_each_input_has_its_own_shape():
    signature = [tf.TensorSpec([None, 3], tf.int32, "x"), tf.TensorSpec([None], tf.int32, "y")]
    source = remap_input_source(QueueInput(numbers(3)), ["y"])
    with running(source, signature) as (_, _, (x, y), _):
        assert (x.shape.as_list(), y.shape.as_list()) == ([None, 3], [None])


def test_the_order_of_the_names_is_that_of_the_components():
    source = TensorInput(lambda: [tf.constant(1), tf.constant(2)])
    remap_input_source(source, ("c", "a")).setup(SIGNATURE)
    a, _, c = source.get_input_tensors()
    with tf.Session() as sess:
        assert sess.run([a, c]) == [2, 1]


def test_what_cannot_be_remapped():
    source = remap_input_source(QueueInput(numbers(3)), ["x"])
    with pytest.raises(ValueError, match="no input named 'x', only a, b, c"):
        source.setup(SIGNATURE)
    source = QueueInput(numbers(3))
    source.setup(SIGNATURE[:1])
    with pytest.raises(RuntimeError, match="comes before the setup"):
        remap_input_source(source, ["a"])


def test_placeholders_are_replaced_by_name():
    placeholders = [tf.placeholder(tf.int32, [], name) for name in "abc"]
    one, two = tf.constant(1), tf.constant(2)
    assert get_sublist_by_names(placeholders, ["c", "a"]) == [placeholders[2], placeholders[0]]
    found = get_tensors_inputs(placeholders, [one, two], ["c", "a"])
    assert [each.name for each in found] == [two.name, placeholders[1].name, one.name]
