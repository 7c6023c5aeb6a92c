"""Random processes of a group are killed again and again; it ends as if nothing had been.

With TENSORPACK_GROUP_KILLS=200 this is the soak. A failure tells the seed: TENSORPACK_SOAK_SEED
repeats its choices.
"""

import os
import random
import re
import signal
import sys
import time

import pytest

from tests.processes import gone

from .group import Launched, check_saved

KILLS = int(os.environ.get("TENSORPACK_GROUP_KILLS", 4))
SEED = int(os.environ.get("TENSORPACK_SOAK_SEED", random.SystemRandom().randrange(10**6)))
GROUPS = {"all-reduce": {"workers": 3}, "servers": {"workers": 2, "ps": 1}}
LIMIT = 30.0  # seconds until all are gone
STEPS = 10  # in an epoch
PLAN = {"model": "averages", "shuffle": True, "deterministic": True, "resume": "auto"}


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(GROUPS))
def test_kills_of_random_processes(kind, start, tmp_path):
    sys.stdout.write(f"seed {SEED}\n")
    chance = random.Random(f"{kind} {SEED}")
    plan = {**PLAN, "kind": kind, "steps": STEPS}
    killed = {**plan, "save_to": str(tmp_path / "killed")}
    for number in range(KILLS // len(GROUPS)):
        _kill_one({**killed, "pause": 0.01, "epochs": 10**6}, chance, number)
    names = [re.fullmatch(r"model-(\d+)\.state", each.name) for each in tmp_path.glob("killed/*")]
    epochs = max((int(each.group(1)) for each in names if each), default=0) // STEPS + 2
    for each in killed, {**plan, "save_to": str(tmp_path / "whole")}:
        group = start({**each, "epochs": epochs}, **GROUPS[kind])
        assert group.end(300) == [0] * len(group.workers), group.outputs
    check_saved(tmp_path, "killed", "whole", epochs * STEPS)
    sys.stdout.write(f"{epochs * STEPS} steps: all variables are equal\n")


def _kill_one(plan, chance, number):
    """Kills a process while the group begins, trains or saves; checks how the launcher ends all."""
    mark, longest = chance.choice([("Start Epoch", 1.5), ("Start Epoch", 0.2), ("Finalized", 0.5)])
    child = Launched(plan, **GROUPS[plan["kind"]])
    try:
        child.wait_for(mark)
        pids = child.pids()
        victim, wait = chance.choice(sorted(pids)), chance.uniform(0, longest)
        what = f"kill {number}: {victim}, {wait:.2f} s after {mark}"
        time.sleep(wait)
        begin = time.monotonic()
        os.kill(pids[victim], signal.SIGKILL)
        assert child.end(LIMIT) == 128 + signal.SIGKILL, f"{what}\n{child.output}"
    finally:
        child.process.kill()
    assert all(gone(pid) for pid in pids.values()), what
    assert re.search(rf"First to end: {victim} \(", child.output), f"{what}\n{child.output}"
    sys.stdout.write(f"{what}: all are gone in {time.monotonic() - begin:.1f} s\n")
