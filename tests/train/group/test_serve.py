"""What a process that serves variables hears of its workers, and how it ends."""

import threading

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.launch import _hosts
from tensorpack.tfutils.peers import PeerLost
from tensorpack.train.group.members import JOINED, READY, Group
from tensorpack.train.group.serve import serve
from tensorpack.train.signals import TrainingInterrupted
from tests.processes import wait_until


class Serving:
    """A parameter server on a thread, and a worker of it, which is ready.

    Attributes:
      worker: the `Group` of the worker.
    """

    def __init__(self):
        clusters = {each.job: each for each in _hosts.on_this_machine(1, 1)}
        self._servers = {
            job: tf.train.Server(tf.train.ClusterSpec(each.as_dict()), job, each.index)
            for job, each in clusters.items()
        }
        self._raised = []
        target = self._servers["ps"].target
        self._thread = threading.Thread(target=self._serve, args=[clusters["ps"], target])
        self.worker = Group(clusters["worker"], self._servers["worker"].target, timeout=5.0)
        self._thread.start()
        self.worker.join(lambda lost: None)
        self.worker.ready(0)
        wait_until(lambda: [row.state for row in self.worker.table] == [READY, JOINED], 30)

    def _serve(self, cluster, target):
        try:
            serve(cluster, target, timeout=5.0)
        except BaseException as error:
            self._raised.append(error)

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
