"""What is measured of a flow is the time of the flow, and nothing else."""

import pytest

from tensorpack.dataflow import DataFromGenerator
from tensorpack.dataflow._cli.errors import CommandError
from tensorpack.dataflow._cli.measure import Limits, measure
from tests.dataflow._cli.ticking import Clock, Ticking


def measured(flow, clock, size=100, seconds=1e9, warmup=0):
    return measure(flow, Limits(size, seconds, warmup), "a flow", clock)


def test_times_are_those_of_the_flow():
    clock = Clock()
    found = measured(Ticking(clock, [5, 1, 2, 3], reset=10, nbytes=1000), clock, warmup=1)
    assert found.latencies.tolist() == [1, 2, 3]
    assert (found.number, found.seconds, found.rate) == (3, 6, 0.5)
    assert (found.first_seconds, found.nbytes, found.ended) == (15, 1000, True)


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

    found = measured(Flow(clock, [1, 2, 3]), clock)
    assert found.latencies.tolist() == [1, 2, 3]
    assert clock.now > 100


def test_it_stops_at_a_number_or_a_time():
    clock = Clock()
    flow = Ticking(clock, [2] * 50)
    assert measured(flow, clock, size=7).number == 7
    assert not measured(flow, clock, size=7).ended
    assert measured(flow, clock, seconds=11).number == 6  # the sixth is over after 12
    assert measured(flow, clock, seconds=11, warmup=10).number == 6
    assert measured(flow, clock).ended


@pytest.mark.parametrize("warmup, taken", [(5, 3), (3, 3)])
def test_nothing_to_measure(warmup, taken):
    clock = Clock()
    with pytest.raises(CommandError, match=f"gave {taken} datapoints in a pass.*took {warmup}"):
        measured(Ticking(clock, [1, 1, 1]), clock, warmup=warmup)


def test_the_pass_is_left(monkeypatch):
    left = []

    def endless_numbers():
        try:
            while True:
                yield [0]
        finally:
            left.append(True)

    measure(DataFromGenerator(endless_numbers), Limits(5, 1e9, 1), "a flow")
    assert left == [True]
