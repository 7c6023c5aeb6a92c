"""The weights of a group: those of one process with all of the data, and of any other equal run."""

import signal

import numpy as np
import pytest

from tensorpack.train.group.collective import HAS_HALF

from .group import check_saved

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("workers", [2, pytest.param(3, marks=pytest.mark.one_row)])
def test_workers_do_what_one_does_with_the_whole_batch(start, workers):
    names = ["sgd", "momentum", "adam", "clip", "statistics"]
    plans = [{"model": each, "compare": True, "steps": 100} for each in names]
    plans += [{"model": "momentum", "compare": True, "steps": 100, "towers": 2}] * (workers == 2)
    group = start(*plans, workers=workers)
    assert group.end(200) == [0] * workers, group.outputs
    for plan, chief, *others in zip(plans, *group.results):
        assert chief["step"] == 200, plan
        for found, expected in zip(chief["weights"], chief["expected"]):
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6, err_msg=str(plan))
        assert [each["weights"] for each in others] == [chief["weights"]] * (workers - 1)


def test_what_workers_may_do_otherwise_and_what_not(start):
    group = start(
        {},
        {"compression": "fp16" if HAS_HALF else None},
        {"model": "clip", "run_alone": False},  # the chief fetches more than the others
        {"more_steps": 1},
        {"more_epochs": 3},
        {"model": "more"},
        {"model": "clip", "run_alone": True},
    )
    assert group.end(100, "worker 0") == [1], group.outputs
    exact, short, along, *differing, alone = group.results[0]
    for chief, other in zip([exact, short, along], group.results[1]):
        assert chief["weights"] == other["weights"]
    exact, short = [np.concatenate(each["weights"]) for each in (exact, short)]
    assert HAS_HALF == (abs(exact - short).max() > 0) and np.allclose(exact, short, atol=0.01)
    texts = ["steps_per_epoch: [8, 9].", "max_epoch: [2, 5].", "variables: ["]
    for chief, other, text in zip(differing, group.results[1][3:], texts):
        assert chief["error"].startswith(f"ValueError: The workers differ in {text}")
        assert other["error"] == chief["error"] and "step" not in chief
    assert "cannot be fetched outside it. Fetch it along with the step" in alone["error"]


@pytest.mark.fault_row(28, 29, 61)
@pytest.mark.parametrize("kind, ps", [("all-reduce", 0), ("servers", 1)])
def test_a_run_that_is_killed_and_interrupted_ends_with_the_same_weights(start, tmp_path, kind, ps):
    plan = {"kind": kind, "model": "averages", "epochs": 6, "timeout": 5, "shuffle": True}
    plan.update(deterministic=True, stop_grace=10)

    def run(name, resume, *signals):
        options = {"save_to": str(tmp_path / name), "resume": resume, "pause": 0.05 * len(signals)}
        group = start({**plan, **options}, ps=ps)
        for text, signum, who in signals:
            group.wait_for(text)
            group.send(signum, who)
        codes = group.end(100)
        steps = [each[0].get("step") for each in group.results if each]
        group.kill()
        return codes, steps

    assert run("whole", "never") == ([0, 0], [48, 48])
    killed = f"ps {ps - 1}" if ps else "worker 1"
    codes, _ = run("cut", "never", ("step 18", signal.SIGKILL, killed))
    assert 0 not in codes
    codes, steps = run("cut", "must", ("step 28", signal.SIGTERM, "worker 1"))
    assert codes == [143, 143] and steps[0] == steps[1] >= 28
    assert run("cut", "must") == ([0, 0], [48, 48])
    found = check_saved(tmp_path, "cut", "whole", 48)
    name, others = ("tower0/" if ps else "") + "bn/mean/EMA", {"table", "weight", "tower0/table"}
    assert name in found and not others & set(found)
