"""R10 and "list": what is resident of a run, and of a list that processes share. Linux only."""

import os
import re
import tempfile
import time
from pathlib import Path

import numpy as np
from _contest import Contest, difference, itself
from _programs import CHECKOUT, begin
from _report import say

FRAME, HISTORY = (84, 84), 4
EPOCH = re.compile(r"Epoch \d+ \(global_step (\d+)\) finished")
PICTURE = (180, 185, 3)  # uint8, 100 kB
MB, GB = 1e6, 1e9


def resident(child):
    """Megabytes of a process; None if it has ended."""
    found = re.search(r"VmRSS:\s*(\d+)", Path(f"/proc/{child.pid}/status").read_text())
    return int(found.group(1)) * 1024 / MB if found else None


def run(pairs=2, epochs=8, steps=300, seconds=10.0, memory_size=5000, rom="breakout.bin", flags=()):
    """What the main job keeps in memory beyond its replay memory and a bare TensorFlow process.

    Alternates the bare update with a short main job whose replay memory is full from the first step
    on: of the bare process just before it ends, of the job after each epoch. The growth is by least
    squares over the second half of the epochs, at least 2 of them: in the first thousand steps
    allocators still take what they then keep. Of what is beyond, the input queue holds up to 50
    batches, 113 MB. Other flags go to DQN.py.
    """
    from tensorpack.RL import ReplayMemory

    replay = ReplayMemory.required_bytes(memory_size, FRAME, HISTORY) / MB
    sizes = {"run": [], "bare process": [], "replay memory": [replay] * pairs}
    slopes = []
    for _ in range(pairs):
        sizes["bare process"].append(bare(seconds))
        points = whole(rom, memory_size, steps, epochs, flags)
        at, megabytes = np.array(points[len(points) // 2 :]).T
        sizes["run"].append(megabytes[-1])
        slopes.append(np.polyfit(at, megabytes, 1)[0] * 10000)
    kind = {"unit": "MB", "judge": difference}
    yield Contest("memory of a run beyond its parts", sizes, target="<= 150", **kind)
    yield Contest("its growth in 10,000 steps", {"growth": slopes}, target="<= 1", **kind)


def bare(seconds):
    """Megabytes of the graph alone, at last."""
    from dqn import update_dqn

    last = float("nan")
    with begin([update_dqn, seconds, []]) as child:
        while child.poll() is None:
            last = resident(child) or last
            time.sleep(0.1)
        output = child.stdout.read()
    if child.returncode:
        raise RuntimeError(f"The update ended with {child.returncode}:\n{output}")
    return last


def whole(rom, memory_size, steps, epochs, flags=(), measure=resident):
    """Steps and megabytes of the main job after each epoch; `measure` takes the process."""
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
                    points.append((int(found.group(1)), measure(child)))
    if child.returncode:
        raise RuntimeError(f"DQN.py ended with {child.returncode}:\n{''.join(output)}")
    return points


def shared_list(gigabytes=2.0, passes=50, processes=4, plain=False):
    """The memory of a large list that four processes read, over many passes.

    The list has a dict for each element: a name, boxes, and a picture of 100 kB. It is a
    `SharedList`, or with `--plain` a Python list. What this process and its workers take together
    is the proportional set size, in which shared pages count once; the growth is by least squares
    over the second half of the passes.
    """
    from tensorpack.dataflow import DataFromList, MultiProcessRunner, SharedList

    count = int(gigabytes * GB / np.prod(PICTURE))
    made = elements(count)
    source = DataFromList(list(made) if plain else SharedList(made))
    flow = MultiProcessRunner(source, 64, processes)
    flow.reset_state()
    points = []
    try:
        for number in range(1, passes + 1):
            for datapoint in flow:
                if len(datapoint["boxes"]) != 10:
                    raise RuntimeError("The data has changed on its way.")
            points.append(proportional_bytes(os.getpid()) / MB)
            say(f"pass {number}: {points[-1]:.0f} MB")
    finally:
        flow.close()
    half = points[-max(2, len(points) // 2) :]
    slope = np.polyfit(range(len(half)), half, 1)[0]
    name = f"{'list' if plain else 'SharedList'} of {count}"
    kind = {"unit": "MB", "judge": itself}
    yield Contest(
        f"{name}, after the last pass", {"last": points[-1:], "first": points[:1]}, **kind
    )
    yield Contest(f"{name}, growth in a pass", {"growth": [slope]}, **kind)


def elements(count):
    """What the list is made of."""
    rng = np.random.RandomState(0)
    for index in range(count):
        boxes = [[float(each) for each in rng.rand(4)] for _ in range(10)]
        picture = np.full(PICTURE, index % 256, np.uint8)
        yield {"name": f"picture number {index}", "boxes": boxes, "picture": picture}


def proportional_bytes(pid):
    """Of a process and of all that it has started, together."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    own = sum(int(size) * 1024 for size in re.findall(r"^Pss: *(\d+)", rollup, re.MULTILINE))
    return own + sum(map(proportional_bytes, children))
