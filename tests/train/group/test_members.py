"""The group of the processes of a run: what each hears of the others."""

import contextlib
import socket
import threading

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.launch import _hosts
from tensorpack.train.group import members as group_module
from tensorpack.train.group import peers, table
from tensorpack.train.group.members import Members
from tensorpack.train.group.peers import PeerLost
from tensorpack.train.group.table import FAILED, JOINED, LEFT, READY
from tests.processes import in_thread, wait_until


class Member:
    """A process of a group; here all are in this one.

    Attributes:
      group: its `Members`.
      lost: the errors that it was told.
      left: who has ended before it.
    """

    def __init__(self, cluster, timeout=5.0, **options):
        server = tf.train.Server(
            tf.train.ClusterSpec(cluster.as_dict()), cluster.job, cluster.index
        )
        self.target = server.target
        self._server = server
        self.group = Members(cluster, server.target, timeout=timeout, **options)
        self.lost = []
        self.left = []
        self.step = 0
        self.plan = 10

    def join(self):
        self.group.join(self.lost.append, self.left.append, lambda: self.step, self.plan)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Has all tell and hear several times a second, so that no test waits for that."""
    monkeypatch.setattr(table, "_PERIOD_SECONDS", 0.05)
    monkeypatch.setattr(peers, "_PERIOD_SECONDS", 0.05)


@pytest.fixture
def members(quick):
    """One parameter server, which starts first, and two workers."""
    made = [Member(each) for each in sorted(_hosts.on_this_machine(2, 1), key=lambda c: c.job)]
    yield made
    for each in made:
        if not each.group.stopping.is_set():
            each.group.leave(failed=False)


def states(member):
    return [row.state for row in member.group.table]


def test_each_hears_what_becomes_of_the_others(members):
    server, chief, other = members
    for each in members:
        each.join()
    wait_until(lambda: states(server) == states(other) == [JOINED] * 3)
    chief.group.ready(7)
    wait_until(lambda: other.group.table[0][:3] == (READY, 7, 0))
    other.group.vote(15)
    wait_until(lambda: server.group.votes() == chief.group.votes() == 15)
    assert all(server.group.alive(index) for index in (0, 1))
    other.group.leave(failed=False, step=7)
    wait_until(lambda: states(chief) == [READY, LEFT, JOINED])
    wait_until(lambda: not server.group.alive(1))
    chief.group.leave(failed=True, step=8)
    wait_until(lambda: states(server)[:2] == [FAILED, LEFT])

    assert chief.lost == []


def test_a_worker_that_waits_hears_who_has_ended(members):
    server, chief, other = members
    for each in members:
        each.join()
    wait_until(lambda: states(chief) == [JOINED] * 3)
    chief.step = 8
    other.group.leave(failed=False, step=7)
    wait_until(lambda: chief.left == [chief.group.who(1)])
    assert chief.lost == []


def test_a_group_ends_without_waiting_for_its_next_look(monkeypatch):
    monkeypatch.setattr(table, "_PERIOD_SECONDS", 20.0)
    monkeypatch.setattr(peers, "_PERIOD_SECONDS", 20.0)
    clusters = sorted(_hosts.on_this_machine(1, 2), key=lambda each: each.job)
    made = [Member(each, timeout=100.0) for each in clusters]
    for each in made:
        each.join()
    wait_until(lambda: all(each.group.connected() for each in made))
    for each in made:
        each.group.leave(failed=False)
    assert {each.name for each in threading.enumerate()} & {"GroupTable", "PeerWatch"} == set()


def test_nothing_is_left_open_at_the_server(monkeypatch, members):
    opened, opens = [], table.Table.session

    def opening(link, graph):
        opened.append(opens(link, graph))
        return opened[-1]

    monkeypatch.setattr(table.Table, "session", opening)
    for each in members:
        each.join()
    wait_until(lambda: all(each.group.connected() for each in members))
    for each in members:
        each.group.leave(failed=False)
    assert len(opened) == 3
    for each in opened:
        with pytest.raises(RuntimeError, match="closed"):
            each.run([])


@pytest.mark.slow
def test_workers_must_have_epochs_of_the_same_length(members):
    server, chief, other = members
    other.plan = 12
    for each in members:
        each.join()
    wait_until(lambda: chief.lost and other.lost)
    assert f"{chief.group.who(1)} has epochs of 12 steps, and this process of 10" in str(
        chief.lost[0]
    )
    assert server.lost == []


def test_one_that_fails_returns_when_the_host_knows_it(monkeypatch, members):
    monkeypatch.setattr(group_module, "_TELL_SECONDS", 30.0)
    server, chief, other = members
    for each in members:
        each.join()
    wait_until(lambda: states(other) == [JOINED] * 3)
    other.group.fail()  # its process may end now
    assert states(other)[1] == FAILED
    wait_until(lambda: chief.lost)
    assert str(chief.lost[0]) == f"{chief.group.who(1)} failed: its own log says why."


def test_one_that_fails_tells_whose_loss_it_ends_by(members):
    server, chief, other = members
    for each in members:
        each.join()
    wait_until(lambda: states(other) == [JOINED] * 3)
    other.group._on_silent("ps 0", PeerLost("ps 0 was killed"))
    other.group.fail()
    wait_until(lambda: chief.lost)
    who = chief.group.who
    assert str(chief.lost[0]) == f"{who(2)} is lost, and so {who(1)} ended."


@pytest.mark.slow
def test_a_host_without_its_table_was_started_again(monkeypatch, members):
    monkeypatch.setattr(group_module, "_TELL_SECONDS", 0.1)  # it hears no last words
    server, chief, other = members
    for each in members:
        each.join()
    wait_until(lambda: states(other) == [JOINED] * 3)
    with tf.Graph().as_default(), tf.device("/job:ps/task:0/device:CPU:0"):
        rows = table.shared_variable(table.NAME, tf.int64, [3, len(table.Row._fields)])
        lose = tf.raw_ops.DestroyResourceOp(resource=rows)
        with tf.Session(server.target) as session:
            session.run(lose)
    at = server.group.cluster.address
    text = f"ps 0 at {at} was started again: the variables that it had are lost."
    wait_until(lambda: chief.lost and other.lost)
    assert [str(each) for each in chief.lost + other.lost] == [text] * 2


def test_what_workers_wait_for_is_ended_once():
    def end():
        return tf.FIFOQueue(100, [tf.int64], [[]], shared_name="ends").enqueue(0)

    clusters = sorted(_hosts.on_this_machine(1, 1), key=lambda each: each.job)
    server, worker = [Member(each, closing=end) for each in clusters]
    with contextlib.ExitStack() as stack:
        for each in (server, worker):
            each.join()
            stack.callback(each.group.leave, failed=False)
        worker.group.release()

        def told(signum):
            worker.group.vote(signum)
            return wait_until(lambda: server.group.votes() == signum)

        assert told(2) and told(3)  # two rows after that
        with tf.Graph().as_default(), tf.device("/job:ps/task:0/device:CPU:0"):
            ends = tf.FIFOQueue(100, [tf.int64], [[]], shared_name="ends").size()
            with tf.Session(server.target) as session:
                assert session.run(ends) == 1


@pytest.mark.slow
def test_a_server_that_accepts_connections_but_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(peers, "_START_FACTOR", 0.2)
    server, other, worker = sorted(_hosts.on_this_machine(1, 2), key=lambda each: each.name)
    host, _, port = other.address.rpartition(":")
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind((host, int(port)))
        listener.listen(5)
        for each in (Member(server), Member(worker)):
            each.join()
            stack.callback(each.group.leave, failed=True)
        wait_until(lambda: each.lost)
        text = f"{other.name} ({other.address}) did not start within 1 seconds. Start all processes"
        assert [str(error).startswith(text) for error in each.lost] == [True]
        assert each.group.table[0].state == JOINED  # so that the first server hears of its end


def test_workers_gather_the_values_of_all_as_often_as_they_like(members):
    for each in members:
        each.join()
    wait_until(lambda: all(each.group.connected() for each in members))
    tables = []

    def gather(group):
        for number in range(2):
            tables.append(group.gather([number, group.index], lambda: None).tolist())

    for thread, _ in [in_thread(gather, each.group) for each in members[1:]]:
        thread.join(30)
    assert sorted(tables) == [[[0, 0], [0, 1]]] * 2 + [[[1, 0], [1, 1]]] * 2


@pytest.mark.slow
def test_who_never_starts_is_named(monkeypatch):
    monkeypatch.setattr(peers, "_START_FACTOR", 0.2)
    clusters = sorted(_hosts.on_this_machine(2, 1), key=lambda each: each.name)
    with contextlib.ExitStack() as stack:
        server, chief = [Member(each) for each in clusters[:2]]
        for each in (server, chief):
            each.join()
            stack.callback(each.group.leave, failed=True)
        wait_until(lambda: chief.lost)
        assert str(chief.lost[0]).startswith(f"worker 1 ({clusters[2].address}) did not start")
        assert server.lost == []  # it waits for as long as it takes
