"""Follows each tutorial in a fresh folder: writes its files, runs its commands, sees its result.

The quick start is followed as a person does it, by a shell with new interpreters; the others save
that time by copies of a process which has loaded TensorFlow.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checks import ROOT
from tests.harness import Zygote
from tests.pages import commands, write_files
from tests.RL.players import breakout_rom

pytestmark = pytest.mark.slow

TUTORIALS = ROOT / "docs" / "tutorials"

LONG = ["08-performance"]
NEEDS = {"your-images": "sklearn", "your-table": "pandas"}  # of the extra `tutorials`
# What a page promises: a line of the output, and the least and the greatest value of its number.
PROMISES = {
    "01-classifier": [(r"correct: ([\d.]+)", 0.93, 1)],
    "02-dataflow": [(r"validation_error: ([\d.]+)", 0, 0.05), (r"(\d+) recordings in", 100, 100)],
    "03-callbacks": [(r"Training was stopped\. .* reached ([\d.]+)", 0.99, 1)],
    "04-saving": [
        (r"Start training with global_step=(\d+)", 200, 200),
        (r"of the six kinds, right: ([\d.]+)", 0.93, 1),
        (r"transfer: .* right: ([\d.]+)", 0.78, 1),
        (r"nothing: .* right: ([\d.]+)", 0.3, 0.75),
    ],
    "05-losses": [
        (r"radius: ([\d.]+)", 0.85, 1.15),
        (r"spread: ([\d.]+)", 0, 0.3),
        (r"covered: ([\d.]+)", 0.7, 1),
    ],
    "06-several-gpus": [
        (r"cost: ([\d.]+)", 0, 0.03),
        (r"6 variables differ by at most ([\d.]+)", 0, 1e-4),
    ],
    "07-dqn": [(r"mean_score: ([-\d.]+)", 0.8, 1), (r" score: ([-\d.]+)", 0.5, 1)],
    "your-algorithm": [
        (r"cost: ([\d.]+)", 0, 1),
        (r"n_step=(\d)", 3, 3),
        (r"fc0/W:0 +\[\d+, (\d+)\]", 128, 128),
        (r"mine.py .*--algo Expectiles .*--load .*model-(\d+)", 40, 40),
    ],
    "your-images": [
        (r"validation_error: ([\d.]+)", 0, 0.2),
        (r"square.007.png: square with probability ([\d.]+)", 0.5, 1),
        (r"correct without tensorpack: ([\d.]+)", 0.9, 1),
    ],
    "your-table": [
        (r"val_recall: ([\d.]+)", 0.85, 1),
        (r"basic +\S+ +([\d.]+)$", 0.7, 1),
        (r"NaN .* ([\d.]+)$", 0, 0.3),
    ],
    "your-texts": [
        (r"validation_error: ([\d.]+)", 0, 0.1),
        (r"cooking with probability ([\d.]+): we fry", 0.4, 1),
        (r"chess with probability ([\d.]+): the king", 0.4, 1),
        (r"sailing with probability ([\d.]+): an anchor", 0.4, 1),
    ],
    "08-performance": [
        (r"Waiting for data takes (\d+)%: the data is the limit", 15, 100),
        (r"Callbacks take (\d+)% .* PeriodicTrigger-WatchWeights", 30, 100),
        (r"Throughput \(samples/sec\): ([\d.]+)", 1000, 1e9),
    ],
}


@pytest.fixture(scope="module")
def zygote():
    """The process whose copies run the commands."""
    with Zygote() as process:
        yield process


def follow(page, folder, zygote):
    """Runs the commands of a page, each of which starts Python; returns what they print."""
    write_files(page, folder)
    printed = ""
    for line in "".join(block.code for block in commands(page)).splitlines():
        python, *words = shlex.split(line, comments=True) or ["python"]
        assert python == "python", f"{page.name} runs {line!r}"
        if words:
            child = zygote.run(folder, *words)
            assert child.end(timeout=300) == 0, child.output[-8000:]
            printed += child.output
    return printed


def follow_in_a_shell(page, folder):
    """Runs the commands of a page, as somebody who copies them; returns what they print."""
    write_files(page, folder)
    lines = "".join(block.code for block in commands(page))
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-exc", lines],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=str(folder),
        env=environ,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout


def check(output, promises):
    for pattern, least, greatest in promises:
        found = re.findall(pattern, output, re.MULTILINE)
        assert found, f"{pattern!r} is not in:\n{output[-8000:]}"
        assert least <= float(found[-1]) <= greatest, output[-8000:]


def marks_of(name):
    """CI runs a tutorial on one TensorFlow: those that need more on Python 3.7, which has it."""
    if name in NEEDS and sys.version_info < (3, 8):
        return []
    return [pytest.mark.one_row, *[pytest.mark.nightly] * (name in LONG or name in NEEDS)]


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=marks_of(each)) for each in sorted(PROMISES)]
)
def test_a_tutorial_reaches_its_result(name, zygote, tmp_path):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason="needs .[tutorials]")
    if name == "your-algorithm":  # the ale-py of TensorFlow 1.15 has no games
        shutil.copy(breakout_rom(), str(tmp_path / "breakout.bin"))
    check(follow(TUTORIALS / f"{name}.md", tmp_path, zygote), PROMISES[name])


@pytest.mark.one_row
def test_the_quick_start_reaches_its_result(tmp_path):
    output = follow_in_a_shell(ROOT / "docs" / "quickstart.md", tmp_path)
    check(output, [(r"accuracy: ([\d.]+)", 0.95, 1), (r"^\[1 (0)\]$", 0, 0)])
    deprecated = r"WARNING:tensorflow:.*\nInstructions for updating:\n.*\n"  # lines of TensorFlow 1
    before = re.sub(deprecated, "", output.partition("Start Epoch 1 ")[0]).splitlines()
    assert 10 < len(before) <= 25, "what a start says fits on a screen"


def test_each_tutorial_promises_something():
    pages = {path.stem for path in TUTORIALS.glob("*.md")} - {"index"}
    assert set(PROMISES) == pages
