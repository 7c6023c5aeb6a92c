"""The contract alone; `tests/train/test_queue_graphs.py` has the runs."""

from tensorpack.callbacks.queue_runners import StartQueueRunners
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.queues import all_queues
from tests.callbacks.driver import MiniTrainer
from tests.contracts.callback import CallbackContract


class TestStartQueueRunners(CallbackContract):
    def make_graph(self):
        number = tf.train.range_input_producer(10, num_epochs=1).dequeue()
        all_queues(tf.get_default_graph())
        return number.op

    def make_callback(self):
        return StartQueueRunners()


def test_a_graph_without_queue_runners_has_no_state():
    callback = StartQueueRunners()
    MiniTrainer([callback]).train()
    assert callback.state_dict() == {}
