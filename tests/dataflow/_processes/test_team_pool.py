"""A pool gives out pools, takes them back, and ends them all with their owner."""

import multiprocessing

import pytest

from tensorpack.dataflow import DataFlowTerminated
from tensorpack.dataflow._processes.base import WorkerPools
from tensorpack.dataflow._processes.pool import WorkerPool
from tensorpack.dataflow._processes.sender import Limits
from tests.dataflow import process_functions as functions

LIMITS = Limits(4, 2, 1 << 24)


class Owner:
    """Has a pool."""


class TestPool:
    @pytest.fixture
    def owner(self):
        owner = Owner()
        owner.pools = WorkerPools(owner)
        yield owner
        owner.pools.close()

    @staticmethod
    def pool():
        return WorkerPool(functions.count_up, (5,), ("ds", None), 1, LIMITS, "fork", "Pool")

    def test_a_team_works_again(self, owner):
        first = owner.pools.take(self.pool)
        second = owner.pools.take(self.pool)
        assert first is not second
        owner.pools.give_back(first)
        assert owner.pools.take(self.pool) is first

    def test_there_is_one_at_most_once(self, owner):
        owner.pools.prepare(self.pool)
        owner.pools.prepare(self.pool)
        assert len(multiprocessing.active_children()) == 1

    def test_one_that_was_closed_is_forgotten(self, owner):
        pool = owner.pools.take(self.pool)
        pool.close()
        owner.pools.give_back(pool)
        assert owner.pools.take(self.pool) is not pool
        owner.pools.prepare(self.pool)
        assert len(multiprocessing.active_children()) == 1

    def test_close_ends_those_at_work_as_well(self, owner):
        working = owner.pools.take(self.pool)
        owner.pools.give_back(owner.pools.take(self.pool))
        owner.pools.close()
        assert working.closed
        assert multiprocessing.active_children() == []
        owner.pools.give_back(working)
        owner.pools.prepare(self.pool)
        assert len(multiprocessing.active_children()) == 1

    def test_close_ends_one_that_is_being_made(self, owner):
        def make():
            pool = self.pool()
            owner.pools.close()
            return pool

        with pytest.raises(DataFlowTerminated, match="closed while its processes were"):
            owner.pools.take(make)
        assert multiprocessing.active_children() == []

    def test_it_is_closed_with_its_owner(self):
        owner = Owner()
        pool = WorkerPools(owner)
        pool = pool.take(self.pool)
        del owner
        assert pool.closed
        assert multiprocessing.active_children() == []
