import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder.input_source import ZMQInput
from tensorpack.input_source import QueueInput
from tests.dataflow.remote_peers import Sending, free_address
from tests.input_source.run_source import hooked, numbers, running

pytest.importorskip("zmq")
pytest.importorskip("msgpack")

SIGNATURE = [tf.TensorSpec([], tf.int32, "number")]


def test_a_run_reads_what_another_program_sends():
    address = free_address()
    source = ZMQInput(endpoint=address, timeout=20)  # the keyword of 2017, and one of the flow
    assert isinstance(source, QueueInput)
    with running(source, SIGNATURE) as (_, sess, tensors, callbacks):
        sending = Sending(numbers(5), address, passes=1)
        session = hooked(sess, callbacks)
        assert [session.run(tensors) for _ in range(5)] == [[i] for i in range(5)]
        sending.end()


def test_a_dataset_of_what_comes():
    address = free_address()
    source = ZMQInput(address, timeout=20)
    dataset = source.to_dataset([tf.TensorSpec([], tf.int64, "number")])
    try:
        (x,) = tf.data.make_one_shot_iterator(dataset).get_next()
        assert x.shape == []
        sending = Sending(numbers(3), address, passes=1)
        with tf.Session() as sess:
            assert [sess.run(x) for _ in range(3)] == [0, 1, 2]
            with pytest.raises(tf.errors.OutOfRangeError):
                sess.run(x)
        sending.end()
    finally:
        source.release()
