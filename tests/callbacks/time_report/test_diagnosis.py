import pytest

from tensorpack.callbacks.time_report._diagnosis import Figures, advice, describe, diagnose


def figures(**known):
    return Figures(**{"seconds": 30.0, "steps": 300, "waiting": 0.0, "callbacks": 0.01, **known})


@pytest.mark.parametrize(
    "known, before, limit",
    [
        ({"waiting": 0.15}, "", "data"),
        ({"waiting": 0.14}, "", "step"),
        ({"waiting": 0.11}, "data", "data"),  # what was said is not taken back at once
        ({"waiting": 0.09}, "data", "step"),
        ({"waiting": None}, "", "step"),
        ({"callbacks": 0.14}, "", "step"),
        ({"callbacks": 0.14}, "callbacks", "callbacks"),
        ({"callbacks": 0.3, "waiting": 0.4}, "", "data"),
        ({"callbacks": 0.4, "waiting": 0.3}, "", "callbacks"),
        ({"fill": 0.4, "trend": -0.5}, "", "draining"),
        ({"fill": 0.4, "trend": -0.1}, "", "step"),  # it stays so
        ({"fill": 0.8, "trend": -0.5}, "", "step"),
        ({"busy": 0.9}, "", "processor"),
        ({"busy": 0.8}, "", "step"),
        ({"busy": 0.8}, "processor", "processor"),
        ({"busy": 0.4, "machine": 0.9}, "", "processor"),
        ({"busy": 0.4, "machine": 0.9, "on_gpu": True}, "", "step"),
        ({"busy": 0.9, "on_gpu": True}, "", "step"),
        ({"busy": 0.9, "fill": 0.0, "trend": -0.9}, "", "draining"),
    ],
)
def test_diagnosis(known, before, limit):
    assert diagnose(figures(**known), before) == limit


def said(limit, hint=None, **known):
    return advice(limit, figures(**known), hint)


def test_advice_on_data():
    players = "the players are the limit; try --num-players 8"
    assert said("data", players, waiting=0.71) == f"Waiting for data takes 71 %: {players}"
    assert said("data", waiting=0.2) == (
        "Waiting for data takes 20 %: the data is the limit; make it with more workers, or do less "
        "for a datapoint"
    )
    assert said("data", "make it", waiting=0.2, busy=0.97, cores=4) == (
        "Waiting for data takes 20 %: make it (all 4 cores are busy, so it has to become cheaper, "
        "too)"
    )
    assert said("data", "make it", waiting=0.2, busy=0.5, machine=0.97) == (
        "Waiting for data takes 20 %: make it (other programs keep the processor busy)"
    )
    assert said("draining") == (
        "The input queue is running empty, so the steps will soon wait for data: make it with more "
        "workers, or do less for a datapoint"
    )


@pytest.mark.parametrize("slowest, named", [("Slow", ", most often seen at work: Slow"), ("", "")])
def test_advice_on_callbacks(slowest, named):
    assert said("callbacks", callbacks=0.31, slowest=slowest) == (
        f"Callbacks take 31 % between the steps{named}; let them run more rarely (PeriodicTrigger, "
        "PeriodicCallback)"
    )


@pytest.mark.parametrize(
    "known, share",
    [
        ({"busy": 0.5, "machine": 0.97}, "and other programs take 47 % of it"),
        ({"cores": 2}, "all 2 cores are busy"),
        ({"cores": 1}, "the core is busy"),
    ],
)
def test_advice_on_the_processor(known, share):
    text = f"The processor is the limit, {share}; "
    assert said("processor", **known) == (
        f"{text}bfloat16, a GPU, more cores or fewer summaries help"
    )
    assert said("processor", "buy one", **known) == f"{text}buy one"


def test_advice_on_the_step():
    limit = "The data keeps up; the limit is the step itself, "
    assert said("step") == f"{limit}which leaves some of the cores idle"
    assert said("step", "try this", on_gpu=True) == f"{limit}on the GPU; try this"
    assert said("step", steps=60000) == (
        "The data keeps up and a step is very short; do more in each, with larger batches"
    )


def test_what_was_measured_in_a_sentence():
    known = figures(waiting=0.25, callbacks=0.05, fill=0.98, env_steps=41.5, cores=2, busy=0.95)
    assert describe(known) == (
        "waiting for data 25 %, stepping 70 %, callbacks 5 %, of 30 seconds with 300 steps; 10 "
        "updates/s, 41.5 environment steps/s; the input queue is 98 % full; 1.9 of 2 cores busy"
    )
    assert describe(known._replace(machine=0.97)).endswith(
        "1.9 of 2 cores busy, 97 % of the machine"
    )
    assert describe(figures(waiting=None)) == (
        "stepping 99 % (waiting for data could not be told from it), callbacks 1 %, of 30 seconds "
        "with 300 steps; 10 updates/s; 0.0 of 1 cores busy"
    )
    assert figures(waiting=0.7, callbacks=0.4).stepping == 0  # shares that overlap
