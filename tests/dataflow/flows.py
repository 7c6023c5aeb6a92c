"""Small flows, and what is checked and collected of a flow."""

import itertools
import os
import pickle
import threading

from tensorpack.dataflow import DataFlow, DataFlowTerminated, DataFromList
from tests.contracts.dataflow import assert_plain, assert_same


class Canary:
    """Makes a folder when it is unpickled."""

    def __init__(self, path="canary"):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


class ResetsCounted(DataFromList):
    """Counts how often it was reset and closed."""

    resets = closes = 0

    def reset_state(self):
        super().reset_state()
        self.resets += 1

    def close(self):
        self.closes += 1


def check_resumes(make_flow, count):
    """A new flow with the state after `count` datapoints yields the rest, and two more passes."""
    flow = make_flow()
    flow.reset_state()
    going = iter(flow)
    list(itertools.islice(going, count))
    assert_plain(flow.state_dict())
    state = pickle.loads(pickle.dumps(flow.state_dict()))
    twin = make_flow()
    twin.reset_state()
    twin.load_state_dict(state)
    for original in going, flow, flow:
        assert_same(list(iter(twin)), list(original))


def consumer_of(flow):
    """Goes through a flow in a thread, which is started.

    Returns:
      the thread; a list that gets the datapoints, and the text of a `DataFlowTerminated`; and an
      event that is set when there is a datapoint.
    """
    outcome, received = [], threading.Event()

    def consume():
        try:
            for datapoint in flow:
                outcome.append(datapoint)
                received.set()
        except DataFlowTerminated as error:
            outcome.append(str(error))

    consumer = threading.Thread(target=consume)
    consumer.start()
    return consumer, outcome, received


def numbers(count, first=0):
    return DataFromList([[first + i] for i in range(count)], shuffle=False)


def flow_of(datapoints):
    """A flow of some datapoints in their order."""
    return DataFromList(datapoints, shuffle=False)


def shuffled(count):
    return DataFromList([[i] for i in range(count)])


def doubled(datapoint):
    return [2 * datapoint[0]]


class Foreign:
    """Looks like a flow: it has no more than a consumer needs, and no length."""

    def __iter__(self):
        return iter([[i] for i in range(5)])

    def reset_state(self):
        pass


class Of2017(DataFlow):
    """Keeps no state."""

    def get_data(self):
        for i in range(5):
            yield [i]

    def size(self):
        return 5
