"""Fixtures that the tests of several modules share."""

import pytest

from tensorpack.dataflow.remote import RemoteDataZMQ
from tensorpack.utils.rng import _streams
from tests.dataflow.remote_peers import ANY_PORT, SECONDS


@pytest.fixture
def own_streams():
    """Leaves the random streams of other tests alone."""
    before = dict(vars(_streams))
    yield
    vars(_streams).update(before)


@pytest.fixture
def receive():
    """Makes receivers of `remote` that are connected; closes them at the end."""
    flows = []

    def make(addr=ANY_PORT, *args, **options):
        flow = RemoteDataZMQ(addr, *args, **{"timeout": SECONDS, **options})
        flows.append(flow)
        flow.reset_state()
        return flow

    yield make
    for flow in flows:
        flow.close()
