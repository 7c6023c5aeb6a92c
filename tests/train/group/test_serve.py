"""What a process that serves variables hears of its workers, and how it ends."""

import threading

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.launch import _hosts
from tensorpack.train.group.members import Members
from tensorpack.train.group.peers import PeerLost
from tensorpack.train.group.serve import serve
from tensorpack.train.group.table import JOINED, LEFT, READY
from tensorpack.train.signals import TrainingInterrupted
from tests.processes import wait_until


class Serving:
    """The first parameter server on a thread, and a worker of it, which is ready.

    Attributes:
      worker: the `Members` of the worker.
      others: those of further parameter servers.
    """

    def __init__(self, ps=1):
        clusters = {(each.job, each.index): each for each in _hosts.on_this_machine(1, ps)}
        self._servers = {
            task: tf.train.Server(tf.train.ClusterSpec(each.as_dict()), *task)
            for task, each in clusters.items()
        }
        first = "ps", 0
        groups = {
            task: Members(each, self._servers[task].target, timeout=5.0)
            for task, each in clusters.items()
            if task != first
        }
        self._raised = []
        target = self._servers[first].target
        self._thread = threading.Thread(target=self._serve, args=[clusters[first], target])
        self._thread.start()
        for each in groups.values():
            each.join(lambda lost: None)
        self.worker = groups.pop(("worker", 0))
        self.others = list(groups.values())
        self.worker.ready(0)
        expected = [READY, *[JOINED] * ps]
        wait_until(lambda: [row.state for row in self.worker.table] == expected, 30)

    def _serve(self, cluster, target):
        try:
            serve(cluster, target, timeout=5.0)
        except BaseException as error:
            self._raised.append(error)

    def has_ended(self, seconds):
        """Whether the server ends within so many seconds."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def end(self):
        """Waits for the end of the server; returns what it has raised."""
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self._raised[0]


@pytest.fixture
def serving():
    made = Serving()
    yield made
    made.worker.leave(failed=False)
    made.end()


def test_it_ends_when_its_workers_have_ended(serving):
    serving.worker.leave(failed=False, step=7)
    error = serving.end()
    assert type(error) is SystemExit and error.code == 0


def test_it_fails_with_a_worker(serving):
    serving.worker.leave(failed=True)
    error = serving.end()
    who = serving.worker.who(0)
    assert type(error) is PeerLost and str(error) == f"{who} failed: its own log says why."


def test_it_ends_by_the_signal_that_ended_the_group(serving):
    serving.worker.vote(15)
    wait_until(lambda: serving.worker.votes() == 15, 30)
    serving.worker.leave(failed=False, step=7)
    error = serving.end()
    assert type(error) is TrainingInterrupted and error.code == 143


def test_the_first_one_ends_last_for_the_others_read_its_table():
    serving = Serving(ps=2)
    (second,) = serving.others
    serving.worker.leave(failed=False, step=7)
    wait_until(lambda: second.table[0].state == LEFT, 30)
    assert not serving.has_ended(1.0)
    second.leave(failed=False)
    assert serving.end().code == 0
