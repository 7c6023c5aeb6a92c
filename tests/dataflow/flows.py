"""Small parts that several tests of flows need."""

import itertools
import os
import pickle
import subprocess
import sys
import threading
import time

import pytest

from tensorpack.dataflow import DataFlow, DataFlowTerminated, DataFromList
from tensorpack.utils.worker import state_of
from tests.checks import ROOT
from tests.contracts.dataflow import assert_plain, assert_same

LONG = 30  # seconds; waited for in full only if the code is wrong
SOON = 2  # seconds; for what is to happen within one


def gone(pid):
    """True if there is no process of this id, or one that is only to be reaped."""
    return state_of(pid) in ("unknown", "dead")


def wait_until(condition, seconds=LONG):
    """Waits until a condition holds; returns whether it does."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def in_thread(function, *args):
    """Runs a function in a thread; returns the thread and a list for what it raises."""
    errors = []

    def run():
        try:
            function(*args)
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


def in_fork(function):
    """Calls a function in a copy of this process; returns whether it came back."""
    pid = os.fork()
    if not pid:
        try:
            function()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def open_files():
    """What this process has open."""
    return sorted(os.listdir("/proc/self/fd"))


def open_paths():
    """The paths of the files that this process has open."""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("the system does not tell which files are open")
    links = [os.path.join("/proc/self/fd", name) for name in open_files()]
    return [os.readlink(link) for link in links if os.path.islink(link)]


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


def named_memory():
    """What of ours has a name in shared memory; things of other programs come and go there."""
    return sorted(name for name in os.listdir("/dev/shm") if name.startswith("tensorpack"))


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


def run_python(*args, env=None, **options):
    """Runs Python on this source until it ends; returns what `subprocess.run` does."""
    return subprocess.run(
        [sys.executable, *args],
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        capture_output=True,
        timeout=120,
        **options,
    )


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
