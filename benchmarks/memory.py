"""R10: what is resident of a run. Linux only."""

import re
import tempfile
from pathlib import Path

import numpy as np
from _contest import Contest, difference
from _programs import CHECKOUT, begin, fresh

FRAME, HISTORY = (84, 84), 4
EPOCH = re.compile(r"Epoch \d+ \(global_step (\d+)\) finished")
MB = 1e6


def resident(pid, kind="VmRSS"):
    """Megabytes of a process, of this kind."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{kind}:\s*(\d+)", status).group(1)) * 1024 / MB


def run(pairs=2, epochs=21, steps=300, seconds=9.0, memory_size=5000, rom="breakout.bin", flags=()):
    """What the main job keeps in memory beyond its replay memory and a bare TensorFlow process.

    Alternates the bare update with the main job for five epochs of `steps`, its replay memory full
    from the first on: of the bare process after its updates, of the job after its last epoch. Of
    what is beyond, the input queue holds up to 50 batches, 113 MB. Growth is that of a job with
    batches of 8, for time, in the median epoch of the second half of `epochs`: what leaks does so
    in each of them, while allocators take a block of 1 or 2 MB in a few. Pages of files do not
    count. Other flags go to DQN.py.
    """
    from tensorpack.RL import ReplayMemory

    replay = ReplayMemory.required_bytes(memory_size, FRAME, HISTORY) / MB
    sizes = {"run": [], "bare process": [], "replay memory": [replay] * pairs}
    for _ in range(pairs):
        sizes["bare process"].append(fresh(bare, seconds))
        sizes["run"].append(whole(rom, memory_size, steps, 5, flags)[-1][1])
    kind = {"unit": "MB", "judge": difference}
    yield Contest("memory of a run beyond its parts", sizes, target="<= 150", **kind)
    job = [rom, memory_size, steps, epochs, ["--batch-size", 8, *flags]]
    points = whole(*job, lambda pid: resident(pid, "RssAnon"))
    at, megabytes = np.diff(points[len(points) // 2 :], axis=0).T
    slope = np.median(megabytes / at) * 10000
    yield Contest("its growth in 10,000 steps", {"growth": [slope]}, target="<= 1", **kind)


def bare(seconds):
    """Megabytes of this process after as many updates as it can do."""
    from dqn import update_dqn

    update_dqn(seconds, [])
    return resident("self")


def whole(rom, memory_size, steps, epochs, flags=(), measure=resident):
    """Steps and megabytes of the main job after each epoch; `measure` takes its process id."""
    points, output = [], []
    with tempfile.TemporaryDirectory() as folder:
        job = [CHECKOUT / "examples" / "DeepQNetwork" / "DQN.py", "--rom", rom]
        job += ["--logdir", Path(folder) / "log", "--eval-every", 10**6]
        job += ["--memory-size", memory_size, "--init-memory-size", memory_size]
        job += ["--steps-per-epoch", steps, "--max-epoch", epochs]
        with begin([*job, *flags]) as child:
            for line in child.stdout:
                output.append(line)
                found = EPOCH.search(line)
                if found:
                    points.append((int(found.group(1)), measure(child.pid)))
    if child.returncode:
        raise RuntimeError(f"DQN.py ended with {child.returncode}:\n{''.join(output)}")
    return points
