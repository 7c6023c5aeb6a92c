"""Placeholders by their names, also for inputs of scripts that derive from ours."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList, FakeData
from tensorpack.graph_builder import InputDesc
from tensorpack.input_source import QueueInput
from tensorpack.input_source.input_source import EnqueueThread
from tensorpack.input_source.placeholder import build_or_reuse_placeholder
from tests.input_source.run_source import running

X = tf.TensorSpec([None, 2], tf.float32, "x")


def test_a_placeholder_is_made_once_in_a_graph():
    first = build_or_reuse_placeholder(X)
    with tf.name_scope("scope"):
        assert build_or_reuse_placeholder(X) is first
        assert InputDesc(tf.float32, [None, 2], "x").build_placeholder_reuse() is first
    assert (first.name, first.shape.as_list()) == ("x:0", [None, 2])
    with tf.Graph().as_default() as other:
        assert build_or_reuse_placeholder(X).graph is other


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.constant([[1.0, 2.0]], name="x"),
        lambda: tf.placeholder(tf.int32, [None, 2], "x"),
        lambda: tf.placeholder(tf.float32, [None, 3], "x"),
    ],
)
def test_another_tensor_of_the_name_is_an_error(make):
    make()
    with pytest.raises(ValueError, match="has the name of .*x:0.*no such placeholder"):
        build_or_reuse_placeholder(X)


class Augmented(QueueInput):
    """Keeps the placeholders of the model's inputs, as scripts for 0.8 and 0.9 do."""

    def _setup(self, inputs):
        self.seen = [each.build_placeholder_reuse() for each in inputs]
        super()._setup(inputs)


class Shuffling(QueueInput):
    """Makes its own queue and thread, and nothing else that ours has."""

    def _setup(self, inputs):
        self._input_placehdrs = [each.build_placeholder_reuse() for each in inputs]
        dtypes = [each.dtype for each in self._input_placehdrs]
        self.queue = tf.RandomShuffleQueue(20, 4, dtypes, name="shuffled")
        self.thread = EnqueueThread(self.queue, self._inf_ds, self._input_placehdrs)


def test_an_input_of_a_script_makes_its_own_queue_and_thread():
    data = DataFromList([[np.full((1, 2), i, "f")] for i in range(8)], shuffle=False)
    with running(Shuffling(data), [X]) as (_, sess, (tensor,), _):
        seen = [sess.run(tensor)[0, 0] for _ in range(40)]
    assert sorted(set(seen)) == list(range(8)) and seen != 5 * sorted(set(seen))


@pytest.mark.parametrize("spec", [X, InputDesc(tf.float32, [None, 2], "x")], ids=["0.9", "0.8"])
def test_an_input_of_a_script_asks_each_of_its_inputs_for_a_placeholder(spec):
    source = Augmented(FakeData([[4, 2]], 8))
    source.setup([spec])
    assert [each.name for each in source.seen] == ["x:0"]
    (tensor,) = source.get_input_tensors()
    assert tensor.shape.as_list() == [None, 2] and tensor.op.type != "Placeholder"
    source.release()
