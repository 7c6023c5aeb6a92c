import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.graph_builder.input_source import ZMQInput
from tensorpack.input_source import QueueInput
from tests.dataflow.remote_peers import Sending, free_address
from tests.input_source.run_source import hooked, numbers, running

pytest.importorskip("zmq")
pytest.importorskip("msgpack")

SIGNATURE = [tf.TensorSpec([], tf.int32, "number")]


@pytest.mark.parametrize("format", ["zmq_op", "zmq_ops"])  # those of 2017 and of 0.11
def test_a_run_reads_what_another_program_sends(format):
    address = free_address()
    source = ZMQInput(address, 10, timeout=20)
    assert isinstance(source, QueueInput)
    with running(source, SIGNATURE) as (_, sess, tensors, callbacks):
        sending = Sending(numbers(5), address, format=format, passes=1)
        session = hooked(sess, callbacks)
        assert [session.run(tensors) for _ in range(5)] == [[i] for i in range(5)]
        sending.end()


def test_the_keyword_of_2017_and_options_of_the_flow():
    source = ZMQInput(endpoint=free_address(), max_bytes=300)
    assert source.ds._max_bytes == 300
    with pytest.raises(TypeError, match="which are the same argument"):
        ZMQInput(endpoint=free_address(), end_point=free_address())


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
