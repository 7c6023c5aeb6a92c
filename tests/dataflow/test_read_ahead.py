"""Flows that read ahead, whose passes are left early: the data is that of flows that do not.

`pipeline` draws a flow from a number. The same flow without threads and processes says what comes.
"""

import collections
import itertools
import pickle
import random
import time

import numpy as np
import pytest

from tensorpack.dataflow import (
    BatchData,
    BatchDataByShape,
    CacheData,
    ConcatData,
    DataFromGenerator,
    DataFromList,
    FixedSizeData,
    JoinData,
    LocallyShuffleData,
    MapData,
    MultiProcessMapAndBatchData,
    MultiProcessMapData,
    MultiProcessRunner,
    MultiThreadMapData,
    MultiThreadRunner,
    ProxyDataFlow,
    RandomChooseData,
    RandomMapData,
    RandomMixData,
    RepeatedData,
    RepeatedDataPoint,
    RNGDataFlow,
    StateNotKept,
)
from tensorpack.dataflow._processes.start_method import is_worker
from tensorpack.utils import logger
from tensorpack.utils.rng import fix_rng_seed, get_rng
from tests.dataflow.flows import numbers, shuffled
from tests.dataflow.process_flows import FORKED, closing

pytestmark = [pytest.mark.fault_row(60), pytest.mark.usefixtures("own_streams")]

PASSES = 3


class Drawn(RNGDataFlow):
    """Draws each datapoint as it goes, and keeps no state."""

    def __iter__(self):
        for _ in range(5):
            yield [int(self.rng.randint(1000)), np.zeros(2)]


class Left(ProxyDataFlow):
    """A generator of a user's, which leaves each pass of its flow after some datapoints."""

    def __iter__(self):
        for _ in range(2):
            yield from itertools.islice(self.ds, 3)


class Restarted(ProxyDataFlow):
    """Begins a pass of its flow before it leaves the one before, and keeps a state."""

    _STATE = {"part": 0, "count": 0}

    def __iter__(self):
        self._position = part, count = self._take_loaded() or (0, 0)
        return self._pass(part, count, iter(self.ds))

    def _pass(self, part, count, datapoints):
        while part < 2:
            for datapoint in itertools.islice(datapoints, 3 - count):
                count += 1
                self._position = part, count
                yield datapoint
            part, count = part + 1, 0
            self._position = part, count
            if part < 2:
                datapoints = iter(self.ds)


class InThisProcess(ProxyDataFlow, RNGDataFlow):
    """Draws the random streams that a flow with processes draws, but has none."""

    def reset_state(self):
        super().reset_state()
        if not is_worker():
            get_rng()


def slightly_late(datapoint):
    """Takes a time that differs from run to run, and drops some datapoints."""
    if not isinstance(datapoint[0], (int, np.integer)) or datapoint[0] % 4 == 3:
        time.sleep(time.perf_counter_ns() % 4 * 5e-5)
    return None if isinstance(datapoint[0], int) and datapoint[0] % 5 == 4 else list(datapoint)


def in_threads(draw, ds, ahead, num_thread=2, strict=True):
    if not ahead:
        return MapData(ds, slightly_late)
    size = draw.choice([1, 3, 8, 50])
    return MultiThreadMapData(ds, num_thread, slightly_late, buffer_size=size, strict=strict)


def in_processes(draw, ds, ahead, num_proc=2, strict=True):
    if not ahead:
        return InThisProcess(MapData(ds, slightly_late))
    size = draw.choice([1, 3, 8, 50])
    options = {"buffer_size": size, "strict": strict, **FORKED}
    return MultiProcessMapData(ds, num_proc, slightly_late, **options)


def batches_in_a_process(draw, ds, ahead):
    if not ahead:
        return InThisProcess(BatchData(ds, 2, remainder=True))
    options = {"buffer_size": 6, "remainder": True, **FORKED}
    return MultiProcessMapAndBatchData(ds, 1, list, 2, **options)


READ_AHEAD = [
    *[in_threads] * 36,
    *[lambda draw, ds, ahead: LocallyShuffleData(ds, draw.randint(1, 6), draw.randint(1, 2), 2)]
    * 6,
    lambda draw, ds, ahead: in_threads(draw, ds, ahead, 1, False),
    lambda draw, ds, ahead: MultiThreadRunner(lambda: ds, 3, 1),
]
WITH_PROCESSES = [
    *[in_processes] * 12,
    lambda draw, ds, ahead: in_processes(draw, ds, ahead, 1, False),
    batches_in_a_process,
    lambda draw, ds, ahead: MultiProcessRunner(ds, 3, 1, **FORKED),
]
LEAVING = [
    lambda draw, ds, other: JoinData(draw.choice([[ds, other()], [other(), ds]])),
    lambda draw, ds, other: RandomChooseData([ds, other()]),
    lambda draw, ds, other: RandomMixData(
        [FixedSizeData(ds, 4), FixedSizeData(other(), 3, keep_state=False)]
    ),
    lambda draw, ds, other: ConcatData([ds, other()]),
    lambda draw, ds, other: ConcatData([ds, other(), ds]),
    lambda draw, ds, other: FixedSizeData(ds, draw.randint(1, 12), keep_state=False),
    *[lambda draw, ds, other: Restarted(ds)] * 2,
    lambda draw, ds, other: Left(ds) if draw.random() < 0.2 else Restarted(ds),
]
OTHERS = [
    lambda draw, ds: RepeatedData(ds, draw.choice([2, 3, -1])),
    lambda draw, ds: RepeatedData(ds, -1),
    lambda draw, ds: RepeatedDataPoint(ds, 2),
    lambda draw, ds: FixedSizeData(ds, draw.randint(1, 12)),
    lambda draw, ds: CacheData(ds, draw.random() < 0.5),
    lambda draw, ds: BatchData(ds, 2, remainder=True, use_list=True),
    lambda draw, ds: BatchDataByShape(ds, 2, 1),
    lambda draw, ds: RandomMapData(ds, lambda dp, rng: [*dp, rng.randint(1000)]),
]


def source(draw):
    kind = draw.random()
    if kind < 0.01:
        return Drawn()
    count, size = draw.randint(3, 9), draw.choice([2, 2, 3])
    points = [[i, np.full(size if i % 2 else 2, i)] for i in range(count)]
    if kind < 0.02:
        return DataFromGenerator(lambda: iter(points))
    return DataFromList(points, shuffle=draw.random() < 0.8)


def pipeline(draw, ahead, processes, depth=0):
    """Draws a flow; the same one from the same stream, whether it reads `ahead` or not."""

    def other():
        return pipeline(draw, ahead, processes, depth + 1)

    ds = source(draw)
    for _ in range(draw.randint(1, 2)):
        if draw.random() < 0.7:
            ds = draw.choice(OTHERS)(draw, ds)
        inner = random.Random(draw.random())  # reference and flow draw as much from `draw`
        kinds = WITH_PROCESSES if draw.random() < processes else READ_AHEAD
        ds = draw.choice(kinds)(inner, ds, ahead)
        if draw.random() < 0.3:
            ds = draw.choice(OTHERS)(draw, ds)
        if depth < 2 and draw.random() < 0.8:
            ds = draw.choice(LEAVING)(draw, ds, other)
    return ds


def plan_of(draw):
    """How many datapoints are taken of each pass; None for all of them, but not for ever."""
    return [draw.choice([None, draw.randint(0, 12)]) for _ in range(PASSES)]


def consume(flow, plan, first=0, taken=0, stop=None):
    """Takes passes from `first` on, of which `taken` were taken before; the state at `stop`."""
    found = []
    for number in range(first, PASSES):
        most = 60 if plan[number] is None else plan[number]
        datapoints = iter(flow)
        for datapoint in itertools.islice(datapoints, most - taken):
            found.append((number, repr(datapoint)))
            taken += 1
            if len(found) == stop:
                return found, (number, taken, pickle.loads(pickle.dumps(flow.state_dict())))
        taken = 0
    return found, None


def outcome(number, ahead, processes, state=None, **options):
    """Makes a pipeline and consumes it; also says whether it is `seeded` then."""
    fix_rng_seed(number if state is None else number + 10**6)
    draw = random.Random(number)
    plan = plan_of(draw)
    with closing(pipeline(draw, ahead, processes)) as flow:
        flow.reset_state()
        if state is not None:
            flow.load_state_dict(state)
        return (*consume(flow, plan, **options), flow.seeded)


def check(number, processes):
    """Compares a pipeline with what it gives without reading ahead, also resumed.

    Returns what was done: "invalid", "not seeded", "without a state" or "resumed".
    """
    no_array = "'list' object has no attribute 'shape'"  # where batches by shape follow lists
    try:
        expected, _, _ = outcome(number, False, processes)
    except (ValueError, TypeError, RuntimeError):  # such as an empty pass that is to be repeated
        return "invalid"
    except AttributeError as error:
        assert str(error) == no_array
        return "invalid"
    try:
        found, _, seeded = outcome(number, True, processes)
    except AttributeError as error:  # who reads ahead may find it sooner
        assert str(error) == no_array
        return "invalid"
    if found != expected:
        assert not seeded, number
        return "not seeded"
    if not found:
        return "invalid"
    try:
        stop = random.Random(-number).randint(1, len(found))
        first, (at, taken, state), _ = outcome(number, True, processes, stop=stop)
    except StateNotKept:
        return "without a state"
    rest, _, seeded = outcome(number, True, processes, state, first=at, taken=taken)
    assert first + rest == expected or not seeded, number
    return "resumed" if first + rest == expected else "not seeded"


def check_many(numbers, processes, resumed):
    """Checks pipelines, of which at least this share is to be resumed from a state."""
    counts = collections.Counter(check(number, processes) for number in numbers)
    logger.info(f"{dict(counts)}")
    assert counts["resumed"] >= resumed * len(numbers)


@pytest.mark.parametrize("processes, count", [(0, 150), (0.1, 10)])
def test_random_pipelines_give_what_they_give_without_reading_ahead(processes, count):
    check_many(range(count), processes, 0.5)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("begin", range(100, 14100, 1000))
def test_ten_thousand_that_are_resumed(begin):
    check_many(range(begin, begin + 1000), 0.01, 0.6)


LEAVING_EARLY = [
    lambda ds: JoinData([shuffled(3), ds]),
    lambda ds: RandomChooseData([shuffled(3), ds]),
    lambda ds: FixedSizeData(ds, 5, keep_state=False),
]
NOT_PUT_BACK = {
    "no state": lambda: MultiThreadMapData(Drawn(), 2, list, strict=True),
    "late": lambda: MultiThreadMapData(Late(), 2, list, strict=True),
    "not strict": lambda: MultiThreadMapData(shuffled(7), 1, list),
    "batches": lambda: MultiProcessMapAndBatchData(shuffled(7), 1, list, 2, **FORKED),
}


class Late(ProxyDataFlow):
    """Keeps a state, but begins a pass with its first datapoint."""

    def __init__(self):
        super().__init__(shuffled(7))

    def __iter__(self):
        yield from self.ds

    state_dict, load_state_dict = ProxyDataFlow.state_dict, ProxyDataFlow.load_state_dict


@pytest.mark.parametrize("make", NOT_PUT_BACK.values(), ids=NOT_PUT_BACK)
def test_a_source_that_cannot_be_put_back_is_not_seeded(make):
    fix_rng_seed(1)
    for leaves_early in LEAVING_EARLY:
        assert not leaves_early(MapData(make(), list)).seeded
    with closing(make()) as flow:
        assert ConcatData([shuffled(2), flow]).seeded
        for _ in range(2):
            list(flow)
        assert flow.seeded  # all of it was given out
        next(iter(flow))
        next(iter(flow))
        assert not flow.seeded


def test_passes_at_the_same_time_are_not_seeded():
    fix_rng_seed(1)
    flow = MultiThreadMapData(shuffled(9), 2, list, buffer_size=2, strict=True)
    first = iter(flow)
    begun = [next(first)]
    second = iter(flow)
    begun.append(next(second))
    assert flow.seeded
    assert sorted(begun[:1] + list(first)) == sorted(begun[1:] + list(second)) == list(numbers(9))
    assert not flow.seeded


def test_a_reset_is_not_undone():
    def run(ahead):
        fix_rng_seed(1)
        flow = in_threads(random.Random(0), RepeatedData(shuffled(7), -1), ahead)
        found = []
        for _ in range(3):
            flow.reset_state()
            found.append([next(iter(flow)), next(iter(flow))])
        return found

    assert run(True) == run(False)


def not_one(datapoint):
    return [datapoint[0] // (datapoint[0] != 1)]


@pytest.mark.parametrize("kind, options", [(MultiThreadMapData, {}), (MultiProcessMapData, FORKED)])
def test_what_a_function_fails_with_does_not_come_again(kind, options):
    with closing(kind(FixedSizeData(numbers(3), 3), 2, not_one, strict=True, **options)) as flow:
        datapoints = iter(flow)
        assert next(datapoints) == [0]
        with pytest.raises(ZeroDivisionError):
            next(datapoints)
        assert next(iter(flow)) == [2]
