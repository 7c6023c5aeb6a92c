"""The soak of groups: random workers of a group of four are killed or stopped at random moments.

`make soak` does that 200 times. Each time the others must end with an error that names the
one that is lost; then the group is started again and resumes. A run that comes to its end has the
weights of one that was never broken.
"""

import json
import os
import random
import signal
import sys
import time

import pytest

from .harness import Group

KILLS = int(os.environ.get("TENSORPACK_SOAK_KILLS", "200"))
SEED = int(os.environ.get("TENSORPACK_SOAK_SEED", str(random.randrange(10**6))))
WORKERS = 4
TIMEOUT = 5.0  # seconds after which a worker that is stopped counts as lost
PLAN = {"optimizer": "adam", "epochs": 12, "seconds": 0.05, "timeout": TIMEOUT, "raises": True}


def start(directory, zygote, resume):
    plan = {**PLAN, "dir": str(directory), "resume": resume}
    module = "tests.groups.collective_child"
    return Group(module, json.dumps([plan]), workers=WORKERS, zygote=zygote)


def weights_of(group):
    """The weights of each worker of a group that came to its end."""
    assert group.end_all(120) == [0] * WORKERS, group.outputs
    lines = [group[name].output.splitlines() for name in group.workers]
    found = [json.loads(each[7:]) for each in sum(lines, []) if each.startswith("RESULT ")]
    assert len(found) == WORKERS, group.outputs
    return [each["weights"] for each in found]


def break_once(group, draw):
    """Kills or stops a worker at a random moment; returns what happened, "" if all had ended."""
    group.wait_for("Start Epoch ", timeout=120)
    lost, signum = draw.choice(group.workers), draw.choice([signal.SIGKILL] * 3 + [signal.SIGSTOP])
    time.sleep(draw.uniform(0, 4))
    if any(group[name].process.poll() is not None for name in group.workers):
        return ""
    group.send(signum, lost)
    began = time.monotonic()
    for name in group.workers:
        if name == lost:
            continue
        code = group.end(name, timeout=TIMEOUT + 30)
        output = group[name].output
        finished = code == 0 and "RESULT " in output and '"error"' not in output
        named = code == 1 and f"{lost} at 127.0.0.1:" in output and "PeerLost: " in output
        assert named or finished, f"{lost} got {signum}, {name} ended with {code}:\n{group.outputs}"
    return f"{signal.Signals(signum).name} to {lost}, {time.monotonic() - began:.1f} s"


@pytest.mark.soak
def test_kills(zygote, tmp_path):
    draw, done, rounds = random.Random(SEED), 0, 0
    with start(tmp_path / "whole", zygote, "never") as whole:
        expected = weights_of(whole)[0]
    while done < KILLS:
        rounds += 1
        directory = tmp_path / f"round{rounds}"
        happened = "begun"
        while happened and done < KILLS:
            with start(directory, zygote, "auto") as group:
                happened = break_once(group, draw)
            done += bool(happened)
            sys.stdout.write(f"kill {done} of {KILLS} (seed {SEED}): {happened or 'ended'}\n")
        with start(directory, zygote, "auto") as group:
            weights = weights_of(group)
        assert all(each == expected for each in weights), f"seed {SEED}, round {rounds}"
