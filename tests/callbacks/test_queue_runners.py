"""The contract alone; `tests/train/test_queue_graphs.py` has the runs."""

import pytest

from tensorpack.callbacks.queue_runners import StartQueueRunners
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.queues import all_queues
from tests.callbacks.driver import MiniTrainer, log_lines
from tests.contracts.callback import CallbackContract


class TestStartQueueRunners(CallbackContract):
    def make_graph(self):
        number = tf.train.range_input_producer(10, num_epochs=1).dequeue()
        all_queues(tf.get_default_graph())
        return number.op

    def make_callback(self):
        return StartQueueRunners()


def test_the_log_names_them_and_a_deterministic_run_does_so_in_its_refusal(capsys):
    contract = TestStartQueueRunners()
    trainer = MiniTrainer([contract.make_callback()], train_op=contract.make_graph())
    trainer.train()
    (runner,) = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
    assert f"Starting the queue runners of {runner.name} ..." in log_lines(capsys)
    trainer.deterministic = True
    with pytest.raises(ValueError, match=f"the queue runners of {runner.name} make it ahead"):
        trainer.callbacks.cbs[1].before_train()


def test_a_graph_without_queue_runners_has_no_state():
    callback = StartQueueRunners()
    MiniTrainer([callback]).train()
    assert callback.state_dict() == {}
