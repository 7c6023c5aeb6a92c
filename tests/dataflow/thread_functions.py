"""What threads of the tests do, and the names of those that are there."""

import threading

import numpy as np
import pytest

from tensorpack.dataflow import DataFlow, DataFlowTerminated
from tests.dataflow.flows import consumer_of
from tests.processes import LONG

both_orders = pytest.mark.parametrize("strict", [False, True], ids=["completion", "strict"])


class Connection(DataFlow):
    """Gives one datapoint; the next one never comes, until it is closed."""

    def __init__(self):
        self.waiting = threading.Event()
        self._closed = threading.Event()

    def __iter__(self):
        yield [0]
        self.waiting.set()
        assert self._closed.wait(LONG)
        raise DataFlowTerminated("The connection is gone.")

    def close(self):
        self._closed.set()

    def check_closing(self, flow):
        """Closing a flow made from this one ends its threads and wakes a consumer that waits."""
        consumer, outcome, received = consumer_of(flow)
        assert self.waiting.wait(LONG) and received.wait(LONG)
        flow.close()
        name = type(flow).__name__
        assert threads_of(name) == []
        consumer.join(LONG)
        assert len(outcome) == 2 and outcome[0] == [0]
        assert f"{name} was closed or reset" in outcome[1]


class Watched(DataFlow):
    """Checks in every `next` how far the threads are ahead of a consumer that counts `asked`."""

    def __init__(self, ahead, count=10**6):
        self._count = count
        self._ahead = ahead
        self.asked = 0
        self.is_ahead = threading.Event()

    def __iter__(self):
        for taken in range(1, self._count + 1):
            assert taken <= self.asked + self._ahead, f"{taken} taken, {self.asked} asked for"
            if taken == self.asked + self._ahead:
                self.is_ahead.set()
            yield [np.zeros(100, np.uint8)]

    def consume(self, flow, count):
        """Takes `count` datapoints of a flow made from this one; returns the pass."""
        datapoints = iter(flow)
        for _ in range(count):
            self.is_ahead.clear()
            self.asked += 1
            next(datapoints)
            if self.asked + self._ahead <= self._count:
                assert self.is_ahead.wait(LONG)
        return datapoints


def threads_of(name):
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]
