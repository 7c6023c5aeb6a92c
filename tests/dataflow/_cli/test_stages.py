"""The time of a flow is divided among its stages."""

import pytest

from tensorpack.dataflow import BatchData, MapData, ProxyDataFlow
from tensorpack.dataflow._cli.bench import Limits, measure_stages, slowest_stage
from tests.dataflow._cli.ticking import Clock, Ticking


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
