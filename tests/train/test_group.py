"""The group of the processes of a run: what each hears of the others."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.launch import _hosts
from tensorpack.train import group_link
from tensorpack.train.group import FAILED, JOINED, LEFT, READY, Group
from tests.processes import wait_until


class Member:
    """A process of a group; here all are in this one.

    Attributes:
      group: its `Group`.
      lost: the errors that it was told.
      left: who has ended before it.
    """

    def __init__(self, cluster, timeout=5.0, **options):
        server = tf.train.Server(
            tf.train.ClusterSpec(cluster.as_dict()), cluster.job, cluster.index
        )
        self._server = server
        self.group = Group(cluster, server.target, timeout=timeout, **options)
        self.lost = []
        self.left = []
        self.step = 0
        self.plan = 10

    def join(self):
        self.group.join(self.lost.append, self.left.append, lambda: self.step, self.plan)


@pytest.fixture
def members():
    """One parameter server, which starts first, and two workers."""
    made = [Member(each) for each in sorted(_hosts.on_this_machine(2, 1), key=lambda c: c.job)]
    yield made
    for each in made:
        each.group.leave(failed=False)


def states(member):
    return [row.state for row in member.group.table]


def test_each_hears_what_becomes_of_the_others(members):
    server, chief, other = members
    for each in members:
        each.join()
    wait_until(lambda: states(server) == states(other) == [JOINED] * 3)
    chief.group.ready(7)
    wait_until(lambda: other.group.table[0][1:4] == (READY, 7, 0))
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
    monkeypatch.setattr(group_link, "_BEAT_SECONDS", 20.0)
    clusters = sorted(_hosts.on_this_machine(1, 2), key=lambda each: each.job)
    made = [Member(each, timeout=100.0) for each in clusters]
    for each in made:
        each.join()
    # a member links to each server but itself; one that waits has asked at least once
    wait_until(lambda: all(each.group.connected() for each in made))
    for each in made:
        each.group.leave(failed=False)
    assert not [link for each in made for link in each.group._links if link.is_alive()]


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


@pytest.mark.slow
def test_who_never_starts_is_named(members):
    server, chief, other = members
    for each in (server, chief):
        each.group.timeout = 1.0
        each.join()
    wait_until(lambda: chief.lost)
    assert f"{chief.group.who(1)} has not started in 10 s" in str(chief.lost[0])
    assert server.lost == []  # it waits for as long as it takes
