"""What is measured is the time of the flow alone, and it is divided among its stages."""

import numpy as np
import pytest

from tensorpack.dataflow import BatchData, DataFlow, DataFromGenerator, MapData, ProxyDataFlow
from tensorpack.dataflow._cli import CommandError
from tensorpack.dataflow._cli.bench import Limits, measure, measure_stages, slowest_stage


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Ticking(DataFlow):
    """Takes some seconds for each datapoint, and some for a reset."""

    def __init__(self, clock, seconds, reset=0.0, nbytes=8):
        self._clock, self._seconds, self._reset = clock, seconds, reset
        self._nbytes = nbytes

    def __iter__(self):
        for seconds in self._seconds:
            self._clock.now += seconds
            yield [np.zeros(self._nbytes, np.uint8)]

    def __len__(self):
        return len(self._seconds)

    def reset_state(self):
        self._clock.now += self._reset


def measured(flow, clock, size=100, seconds=1e9, warmup=0):
    return measure(flow, Limits(size, seconds, warmup), "a flow", clock)


def test_times_are_those_of_the_flow():
    clock = Clock()
    found = measured(Ticking(clock, [5, 1, 2, 3], reset=10, nbytes=1000), clock, 3, warmup=1)
    assert found.latencies.tolist() == [1, 2, 3]
    assert (len(found.latencies), found.seconds, found.rate) == (3, 6, 0.5)
    assert (found.first_seconds, found.nbytes) == (15, 1000)
    assert (found.passes, found.stopped) == (1, "")


def test_what_measuring_takes_does_not_count():
    clock = Clock()

    class Weighed:
        def __sizeof__(self):
            clock.now += 100
            return 50

    class Flow(Ticking):
        def __iter__(self):
            for _ in super().__iter__():
                yield [Weighed()]

    found = measured(Flow(clock, [1, 2, 3]), clock, size=6)
    assert found.latencies.tolist() == [1, 2, 3, 1, 2, 3]
    assert clock.now > 100


def test_it_stops_at_a_number_or_a_time():
    clock = Clock()
    flow = Ticking(clock, [2] * 50)
    assert len(measured(flow, clock, size=7).latencies) == 7
    assert len(measured(flow, clock, seconds=11).latencies) == 6  # the sixth is over after 12
    assert len(measured(flow, clock, seconds=11, warmup=10).latencies) == 6
    found = measured(Ticking(clock, [2, 2, 2]), clock, seconds=11)
    assert (len(found.latencies), found.passes) == (6, 2)


class Ending(Ticking):
    """Takes two seconds more at the end of a pass, and has so many passes."""

    def __init__(self, clock, seconds, passes, error=None):
        super().__init__(clock, seconds)
        self.left, self.error = passes, error

    def __iter__(self):
        self.left -= 1
        if self.left < 0 and self.error:
            raise self.error
        if self.left >= 0:
            yield from super().__iter__()
            self._clock.now += 2


@pytest.mark.parametrize("size, passes", [(1, 1), (2, 1), (3, 2), (5, 2), (6, 3)])
def test_a_pass_that_ends_is_begun_again(size, passes):
    clock = Clock()
    found = measured(Ending(clock, [1, 3, 4], 9), clock, size=size, warmup=1)
    assert (found.passes, found.stopped) == (passes, "")
    assert found.latencies.tolist() == [3, 4, 3, 3, 4, 3][:size]  # the end of a pass counts


def test_the_warmup_may_take_several_passes():
    clock = Clock()
    found = measured(Ticking(clock, [1, 2, 4]), clock, size=2, warmup=7)
    assert (found.latencies.tolist(), found.passes) == ([2, 4], 1)


def test_the_last_pass_that_a_flow_can_give():
    clock = Clock()
    found = measured(Ending(clock, [1, 1], 2), clock)
    assert (len(found.latencies), found.passes) == (4, 2)
    assert found.stopped == "the next pass gave nothing"
    found = measured(Ending(clock, [1, 1], 2, OSError("gone")), clock)
    assert (len(found.latencies), found.passes) == (4, 2)
    assert found.stopped == "no other pass could begin: OSError: gone"


@pytest.mark.parametrize("warmup", [0, 2])
def test_an_error_before_there_is_anything_to_tell_is_raised(warmup):
    clock = Clock()
    with pytest.raises(OSError, match="gone"):
        measured(Ending(clock, [1, 1], min(warmup, 1), OSError("gone")), clock, warmup=warmup)


def test_an_error_in_a_later_pass_is_raised():
    is_second = iter([False, True])

    def two_passes():
        yield [1]
        if next(is_second):
            raise ZeroDivisionError("in the second pass")

    with pytest.raises(ZeroDivisionError, match="in the second pass"):
        measure(DataFromGenerator(two_passes), Limits(9, 1e9, 0), "a flow")


@pytest.mark.parametrize("warmup", [3, 5])
def test_nothing_to_measure(warmup):
    clock = Clock()
    with pytest.raises(CommandError, match=f"gave 3 datapoints and then .*took {warmup}"):
        measured(Ending(clock, [1, 1, 1], 1), clock, warmup=warmup)


def test_the_pass_is_left():
    left = []

    def endless_numbers():
        try:
            while True:
                yield [0]
        finally:
            left.append(True)

    measure(DataFromGenerator(endless_numbers), Limits(5, 1e9, 1), "a flow")
    assert left == [True]


def test_what_each_stage_takes():
    clock = Clock()

    def slow(datapoint):
        clock.now += 3
        return datapoint

    source = Ticking(clock, [1] * 40)
    mapped = MapData(source, slow)
    flow = BatchData(mapped, 4)
    stages = measure_stages(flow, Limits(100, 1e9, 2), clock)
    assert [stage.flow for stage in stages] == [source, mapped, flow]
    assert [stage.taken for stage in stages] == [None, 1, 4]
    assert [stage.own_seconds for stage in stages] == [4, 12, 0]
    assert flow.ds is mapped and mapped.ds is source  # as before
    text = slowest_stage(stages)
    assert "slowest stage is MapData(slow): 12000 ms for each datapoint of the flow, 75 %" in text


def test_stages_that_drop_and_repeat():
    clock = Clock()
    every_third = iter(range(300))
    flow = MapData(Ticking(clock, [1] * 30), lambda dp: dp if next(every_third) % 3 == 0 else None)
    stages = measure_stages(flow, Limits(10, 1e9, 0), clock)
    assert stages[1].taken == pytest.approx(2.8)  # the tenth is the 28th
    assert "slowest stage is Ticking" in slowest_stage(stages)


def test_a_stage_that_works_beside_the_others():
    class Halving(ProxyDataFlow):
        """As if half of the work were done by somebody else."""

        def __iter__(self):
            for datapoint in self.ds:
                clock.now -= 0.5
                yield datapoint

    clock = Clock()
    stages = measure_stages(Halving(Ticking(clock, [1] * 10)), Limits(10, 1e9, 0), clock)
    assert [stage.own_seconds for stage in stages] == [1, -0.5]
    assert "slowest stage is Ticking: 1000 ms" in slowest_stage(stages)
