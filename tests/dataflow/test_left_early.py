"""Passes of parallel flows that are left early, again and again: nothing stands still or grows."""

import fcntl
import gc
import multiprocessing
import os
import threading

import numpy as np
import pytest

from tensorpack.dataflow import (
    MapData,
    MultiProcessMapAndBatchData,
    MultiProcessMapData,
    MultiThreadMapData,
    MultiThreadRunner,
)
from tests.dataflow.process_flows import FORKED, closing, mixture
from tests.dataflow.process_functions import numbers, whole_array
from tests.dataflow.remote_peers import Sending
from tests.processes import in_thread, open_files
from tests.tiers import first_fast

pytestmark = [pytest.mark.fault_row(57), pytest.mark.usefixtures("own_streams")]

F_SETPIPE_SZ = 1031  # which `fcntl` has since Python 3.10
SMALLEST_PIPE = 4096  # bytes, of a kernel that has no more memory for pipes too
STANDSTILL_SECONDS = 60  # without one more pass
GROWTH = 8 << 20  # bytes, of all processes together
WARM = 125  # passes after which most of the shared memory is in use
SLOTS = 64  # pieces of shared memory, at most; each takes a descriptor when it is used first
SIZE = 10000  # bytes of a datapoint


def datapoints():
    return MapData(numbers(20), whole_array)


FLOWS = {
    "MultiProcessRunner": lambda: mixture(datapoints(), 2),
    "MultiProcessMapData": lambda: MultiProcessMapData(
        numbers(20), 2, whole_array, buffer_size=8, **FORKED
    ),
    "MultiProcessMapData-strict": lambda: MultiProcessMapData(
        numbers(20), 2, whole_array, buffer_size=8, strict=True, **FORKED
    ),
    "MultiProcessMapAndBatchData": lambda: MultiProcessMapAndBatchData(
        numbers(20), 2, whole_array, 2, **FORKED
    ),
    "MultiThreadMapData": lambda: MultiThreadMapData(numbers(20), 2, whole_array, buffer_size=8),
    "MultiThreadMapData-strict": lambda: MultiThreadMapData(
        numbers(20), 2, whole_array, buffer_size=8, strict=True
    ),
    "MultiThreadRunner": lambda: MultiThreadRunner(datapoints, 8, 2),
}


@pytest.fixture
def small_pipes(monkeypatch):
    """Pipes to and from workers hold a sixteenth, so they are full after as many fewer passes."""

    def pipe():
        ends = original()
        fcntl.fcntl(ends[0], F_SETPIPE_SZ, SMALLEST_PIPE)
        return ends

    original = os.pipe
    monkeypatch.setattr(os, "pipe", pipe)


@pytest.mark.parametrize("name", first_fast(FLOWS, 4))
def test_passes_that_are_left_at_once(name, small_pipes):
    with closing(FLOWS[name]()) as flow:
        leave_passes(flow, 250)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", FLOWS)
def test_ten_thousand_passes(name):
    with closing(FLOWS[name]()) as flow:
        leave_passes(flow, 10000)


@pytest.mark.parametrize(
    "count", [250, pytest.param(10000, marks=[pytest.mark.slow, pytest.mark.nightly])]
)
def test_a_remote_flow(receive, count):
    pytest.importorskip("zmq")
    flow = receive()
    sending = Sending(MapData(numbers(count), whole_array), flow.endpoints[0], passes=1)
    leave_passes(flow, count)
    assert list(flow) == []
    sending.end()


def leave_passes(flow, count):
    """Takes the first datapoint of so many passes; compares what there is with what there was."""
    done, held = [], []
    warm = max(count // 10, WARM)

    def leave():
        while len(done) < count:
            array = next(iter(flow))[0]
            assert array.dtype == np.uint8 and array.nbytes % SIZE == 0
            done.append(1)
            if len(done) in (warm, count):
                del array
                gc.collect()
                held.append((threading.active_count(), children(), len(open_files()), memory()))

    flow.reset_state()
    thread, errors = in_thread(leave)
    seen = -1
    while thread.is_alive() and seen < len(done):
        seen = len(done)
        thread.join(STANDSTILL_SECONDS)
    if thread.is_alive():
        flow.close()  # ends the pass that waits
        thread.join()
        pytest.fail(f"it stands still after {len(done)} of {count} passes")
    assert errors == []
    (*before, files_before, memory_before), (*after, files_after, memory_after) = held
    assert after == before
    assert files_after - files_before <= SLOTS
    assert memory_after - memory_before < GROWTH


def children():
    return sorted(child.pid for child in multiprocessing.active_children())


def memory():
    """Bytes of this process and its workers that are in memory and not shared with files."""
    return sum(anonymous(pid) for pid in [os.getpid(), *children()])


def anonymous(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        _, resident, shared = map(int, file.read().split()[:3])
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
