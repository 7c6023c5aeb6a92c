"""The simulator of docs/scaling.md: its formulas, and how far it is from what was measured."""

import math

import pytest
import scaling_page
from scaling import (
    Group,
    Link,
    Machine,
    Model,
    expected_maximum,
    group_of,
    pipelined,
    predict,
    ring,
)

FAST, SLOW = Link(1e9), Link(1e8)
MACHINE = Machine(devices=4, between=FAST, host=FAST, network=SLOW, memory=1e10, sums=1e9)
MODEL = Model("a model", 1e6, compute=0.1, batch=10, spread=0.0)  # 4 MB of gradients
WITHIN = 2.0  # the factor that docs/scaling.md states for what was measured here
WITHIN_PUBLISHED = 1.3


@pytest.mark.parametrize(
    "ranks, link, seconds",
    [
        (1, Link(100.0, 7.0), 0.0),
        (2, Link(100.0), 1.0),  # each sends half of 100 bytes twice
        (4, Link(100.0), 1.5),
        (4, Link(100.0, shared=2), 6.0),
        (4, Link(math.inf, 1.0, shared=2), 12.0),  # six messages, two cores for four ranks
        (3, Link(math.inf, 2.0), 8.0),
    ],
)
def test_ring(ranks, link, seconds):
    assert ring(100, ranks, link) == pytest.approx(seconds)


def test_expected_maximum_of_normal_numbers():
    known = {
        1: 0.0,
        2: 1 / math.sqrt(math.pi),
        3: 1.5 / math.sqrt(math.pi),
        5: 1.16296,
        10: 1.53875,
    }
    assert {count: expected_maximum(count) for count in known} == pytest.approx(known, abs=1e-4)


def test_two_stages_overlap_but_for_a_part_of_the_shorter():
    assert pipelined(3.0, 2.0, 1) == 5.0
    assert pipelined(3.0, 2.0, 4) == 3.5
    assert pipelined(2.0, 3.0, 4) == 3.5
    assert pipelined(3.0, 0.0, 4) == 3.0


def test_one_device_only_computes():
    got = predict(MODEL, Group(), MACHINE, "replicated")
    assert (got.step, got.rate, got.efficiency, got.limit) == (0.1, 100.0, 1.0, "compute")
    assert got.memory == (2 + 1) * 4e6  # the variables, their gradients, the optimizer's numbers


@pytest.mark.parametrize(
    "trainer, group, copies",
    [
        ("replicated", Group(towers=4), 2 + 1),
        ("cpu", Group(towers=4), 2),
        ("collective", Group(machines=2), 3 + 1),
        ("servers", Group(machines=2), 2),
    ],
)
def test_memory_of_a_device(trainer, group, copies):
    model = MODEL._replace(activations=100.0, datapoint=7.0, frozen=5.0)
    memory = predict(model, group, MACHINE, trainer).memory
    assert memory == pytest.approx(copies * 4e6 + 5 * 4 + 10 * (100 + 2 * 7))


def test_what_backprop_does_not_hide_is_added():
    got = predict(MODEL, Group(machines=2, packs=4), MACHINE, "collective")
    network, device = 4e6 / 1e8, 2 * 4e6 / 1e9
    assert got.seconds["network"] == pytest.approx(network)
    hidden = pipelined(0.1 * 2 / 3, network + device, 4)
    assert got.step == pytest.approx(0.1 / 3 + hidden)
    assert got.limit == "network"


def test_servers_are_as_fast_as_the_busier_end():
    seconds = {
        count: predict(MODEL, Group(machines=8, servers=count), MACHINE, "servers").seconds
        for count in (1, 4, 8, 16)
    }
    ways = {count: each["network"] / (4e6 / 1e8) for count, each in seconds.items()}
    assert ways == pytest.approx({1: 16.0, 4: 4.0, 8: 2.0, 16: 2.0})
    assert seconds[4]["server"] == pytest.approx(8 * 4e6 / 4 / 1e9)


def test_stragglers_are_waited_for():
    model = MODEL._replace(spread=0.1)
    got = predict(model, Group(towers=4), MACHINE._replace(between=Link(math.inf)), "replicated")
    assert got.step == pytest.approx(0.1 * (1 + 0.1 * expected_maximum(4)))
    assert got.limit == "stragglers"


def test_towers_beyond_the_cores_take_turns():
    machine = MACHINE._replace(between=Link(math.inf), parallel=2)
    assert predict(MODEL, Group(towers=4), machine, "replicated").step == pytest.approx(0.2)


def test_gradients_travel_in_packs_of_four_megabytes():
    model = MODEL._replace(parameters=5e6)  # 20 MB
    steps = [predict(model, Group(2, packs=count), MACHINE, "collective").step for count in (0, 5)]
    assert steps[0] == steps[1]


def test_a_group_fills_machine_after_machine():
    assert [group_of(count, MACHINE)[:2] for count in (1, 4, 8)] == [(1, 1), (1, 4), (2, 4)]


@pytest.mark.parametrize(
    "trainer, machines, words",
    [("ring", 1, "one of replicated"), ("cpu", 2, "one machine"), ("replicated", 2, "one machine")],
)
def test_a_trainer_that_does_not_run_there_is_refused(trainer, machines, words):
    with pytest.raises(ValueError, match=words):
        predict(MODEL, Group(machines=machines), MACHINE, trainer)


def factors(pairs):
    return [max(one / other, other / one) for one, other in pairs]


def test_what_was_measured_here_is_predicted():
    found = list(scaling_page.points())
    assert len(found) > 20
    worst = max(found, key=lambda each: factors([(each[0]["ms"], each[1])]))
    assert factors([(worst[0]["ms"], worst[1])])[0] < WITHIN, worst


def test_what_others_published_is_predicted():
    found = [(rate, said) for _, _, rate, said in scaling_page.published()]
    assert len(found) > 10
    assert max(factors(found)) < WITHIN_PUBLISHED


def test_the_page_has_the_tables_of_the_simulator():
    page = scaling_page.PAGE.read_text(encoding="utf-8")
    assert scaling_page.render(page) == page, "run make scaling"
    assert f"factor of {WITHIN:g}" in page and f"factor of {WITHIN_PUBLISHED:g}" in page
