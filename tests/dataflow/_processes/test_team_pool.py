"""A pool gives out teams, takes them back, and ends them all with their owner."""

import multiprocessing

import pytest

from tensorpack.dataflow import DataFlowTerminated
from tensorpack.dataflow._processes.channel import Limits
from tensorpack.dataflow._processes.team import Team
from tensorpack.dataflow._processes.team_pool import TeamPool
from tests.dataflow import process_functions as functions

LIMITS = Limits(4, 2, 1 << 24)


class Owner:
    """Has a pool."""


class TestPool:
    @pytest.fixture
    def owner(self):
        owner = Owner()
        owner.pool = TeamPool(owner)
        yield owner
        owner.pool.close()

    @staticmethod
    def team():
        return Team(functions.count_up, (5,), ("ds", None), 1, LIMITS, "fork", "Team")

    def test_a_team_works_again(self, owner):
        first = owner.pool.take(self.team)
        second = owner.pool.take(self.team)
        assert first is not second
        owner.pool.give_back(first)
        assert owner.pool.take(self.team) is first

    def test_there_is_one_at_most_once(self, owner):
        owner.pool.prepare(self.team)
        owner.pool.prepare(self.team)
        assert len(multiprocessing.active_children()) == 1

    def test_one_that_was_closed_is_forgotten(self, owner):
        team = owner.pool.take(self.team)
        team.close()
        owner.pool.give_back(team)
        assert owner.pool.take(self.team) is not team
        owner.pool.prepare(self.team)
        assert len(multiprocessing.active_children()) == 1

    def test_close_ends_those_at_work_as_well(self, owner):
        working = owner.pool.take(self.team)
        owner.pool.give_back(owner.pool.take(self.team))
        owner.pool.close()
        assert working.closed
        assert multiprocessing.active_children() == []
        owner.pool.give_back(working)
        owner.pool.prepare(self.team)
        assert len(multiprocessing.active_children()) == 1

    def test_close_ends_one_that_is_being_made(self, owner):
        def make():
            team = self.team()
            owner.pool.close()
            return team

        with pytest.raises(DataFlowTerminated, match="closed while its processes were"):
            owner.pool.take(make)
        assert multiprocessing.active_children() == []

    def test_it_is_closed_with_its_owner(self):
        owner = Owner()
        pool = TeamPool(owner)
        team = pool.take(self.team)
        del owner
        assert team.closed
        assert multiprocessing.active_children() == []
