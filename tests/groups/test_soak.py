"""Random processes of a group are killed again and again; the group ends as if nothing had been.

With TENSORPACK_GROUP_KILLS=200 this is the soak. A failure tells the seed: TENSORPACK_SOAK_SEED
repeats its choices.
"""

import os
import random
import re
import signal
import sys
import time

import numpy as np
import pytest

from tensorpack.tfutils.checkpoint import load_checkpoint_vars

from .group import Group
from .soaking import STEPS

PROGRAM = "tests.groups.soaking"
KILLS = int(os.environ.get("TENSORPACK_GROUP_KILLS", 4))
SEED = int(os.environ.get("TENSORPACK_SOAK_SEED", random.SystemRandom().randrange(10**6)))
GROUPS = {"all-reduce": {"workers": 4}, "servers": {"workers": 2, "ps": 2}}
LIMIT = 20.0  # seconds until the others have noticed
FOR_EVER = 10**6


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(GROUPS))
def test_kills_of_random_processes(kind, zygote, tmp_path):
    sys.stdout.write(f"seed {SEED}\n")
    chance = random.Random(f"{kind} {SEED}")
    for number in range(KILLS // len(GROUPS)):
        _kill_one(kind, zygote, tmp_path / "killed", chance, number)
    epochs = _newest_step(tmp_path / "killed") // STEPS + 2
    results = []
    for name in "killed", "whole":
        with Group(PROGRAM, kind, tmp_path / name, epochs, 0, zygote=zygote, **GROUPS[kind]) as run:
            assert run.end_all(300) == [0] * len(run.workers), run.outputs
        results.append(load_checkpoint_vars(str(tmp_path / name / f"model-{epochs * STEPS}")))
    assert sorted(results[0]) == sorted(results[1])
    for name, values in results[1].items():
        np.testing.assert_allclose(results[0][name], values, rtol=1e-5, err_msg=name)


def _kill_one(kind, zygote, directory, chance, number):
    """Kills a process while the group trains, saves or begins; checks how the others end."""
    mark, longest = chance.choice([("Start Epoch", 1.5), ("Start Epoch", 0.2), ("Finalized", 0.5)])
    sizes = GROUPS[kind]
    with Group(PROGRAM, kind, directory, FOR_EVER, 0.01, zygote=zygote, **sizes) as group:
        victim = chance.choice(group.names)
        group.wait_for(mark, victim if victim in group.workers else "worker 0")
        wait = chance.uniform(0, longest)
        time.sleep(wait)
        begin = time.monotonic()
        group.kill(victim)
        others = [name for name in group.names if name != victim]
        codes = group.end_all(LIMIT, *others)
        seconds = time.monotonic() - begin
        what = f"kill {number}: {victim}, {wait:.2f} s after {mark}: others end in {seconds:.1f} s"
        sys.stdout.write(what + "\n")
        assert codes == [1] * len(others), f"{what}, {codes}\n{group.outputs}"
        assert group.end(victim, 0) == -signal.SIGKILL
        for name in others:  # a server may name a worker that has ended because of the victim
            lost = victim if name in group.workers else r"\w+ \d"
            text = rf"{lost} at 127\.0\.0\.1:\d+ (?!runs in)"
            assert re.search(text, group[name].output), f"{what}\n{group.outputs}"


def _newest_step(directory):
    names = [re.fullmatch(r"model-(\d+)\.state", path.name) for path in directory.glob("model-*")]
    return max((int(match.group(1)) for match in names if match), default=0)
