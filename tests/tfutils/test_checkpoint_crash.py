"""Saves that a kill or a failing system call cuts short, in real processes."""

import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import CheckpointStore, newest_valid, verify
from tensorpack.utils.checkpoints import get_all_checkpoints
from tests.harness import ROOT
from tests.tfutils.save_checkpoints import EARLIER, LATER

SCRIPT = str(ROOT / "tests" / "tfutils" / "save_checkpoints.py")

# The system calls that change a directory or wait for the disk, by what they are for.
CALLS = {
    "rename": "/^rename",
    "unlink": "/^unlink",
    "link": "/^link",
    "openat": "openat",
    "fsync": "/^f(data)?sync",
}


class Nursery:
    """A process that has imported TensorFlow and forks the processes that save."""

    def __init__(self):
        environ = dict(os.environ, PYTHONPATH=str(ROOT), TF_CPP_MIN_LOG_LEVEL="3")
        self.process = subprocess.Popen(
            [sys.executable, SCRIPT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            universal_newlines=True,
            env=environ,
        )

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()

    def lines(self, begin):
        """Lines of the process's output up to one that begins so, that one included."""
        found = []
        while not (found and found[-1].startswith(begin)):
            line = self.process.stdout.readline()
            assert line, found
            if line.split(" ")[0] in ("READY", "SAVED", "FAILED", "END"):
                found.append(line.strip())
            assert begin == "END" or not line.startswith("END"), "it ended before it was ready"
        return found

    def run(self, folder, *options):
        """Makes the saves under strace; returns the result lines, the status and the trace."""
        folder.mkdir()
        log = folder / "trace"
        self.process.stdin.write(f"{folder / 'saves'}\n")
        self.process.stdin.flush()
        pid = self.lines("READY")[-1].split()[1]
        command = ["strace", "-f", "-y", "-qq", "-o", str(log), "-p", pid, *options]
        tracer = subprocess.Popen(command, stderr=subprocess.PIPE, universal_newlines=True)
        try:
            attached = _wait_until_traced(pid, tracer)
            (folder / "go").touch()
            *results, end = self.lines("END")
        finally:
            tracer.wait(30)
            errors = tracer.stderr.read()
            tracer.stderr.close()
        if not attached:
            pytest.skip(f"strace may not attach here: {errors.strip()}")
        return results, int(end.split()[1]), log.read_text(errors="replace")


def _wait_until_traced(pid, tracer):
    """True once all threads of a process are traced, False if the tracer has given up."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and tracer.poll() is None:
        tasks = [f"/proc/{pid}/task/{task}/status" for task in os.listdir(f"/proc/{pid}/task")]
        states = [Path(task).read_text() for task in tasks]
        if all(not re.search(r"TracerPid:\t0$", state, re.MULTILINE) for state in states):
            return True
        time.sleep(0.005)
    return False


@pytest.fixture(scope="module")
def nursery():
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    opened = Nursery()
    yield opened
    opened.close()


def loaded(directory):
    """What is loaded, as (step, value)."""
    prefix = newest_valid(str(directory))
    reader = tf.train.load_checkpoint(prefix)
    values = {*reader.get_tensor("one").ravel(), *reader.get_tensor("two").ravel()}
    assert len(values) == 1, f"torn: {values}"
    step = re.match(r".*model-(\d+)(\.replaced)?$", prefix).group(1)
    return int(step), int(values.pop())


def check(directory, results):
    """I1 and I2: what is loaded is whole, and not older than what was last reported as saved."""
    for prefix, _ in get_all_checkpoints(directory):
        verify(prefix)  # what has an index is whole, also for those who read no manifest
    order = EARLIER + LATER
    reported = [tuple(map(int, line.split()[1:3])) for line in results if line[:5] == "SAVED"]
    oldest = order.index(reported[-1]) if reported else order.index(EARLIER[-1])
    found = loaded(directory)
    assert order.index(found) >= oldest, (found, results)
    # The next run finds the same one, and can save.
    store = CheckpointStore(str(directory), 2)
    assert loaded(directory) == found
    store.adopt()
    store.save(6, lambda prefix: copy_files(newest_valid(str(directory)), prefix))
    assert loaded(directory) == (6, found[1])
    left = [name for name in os.listdir(str(directory)) if "unfinished" in name]
    assert not left


def copy_files(source, target):
    for suffix in (".index", ".data-00000-of-00001"):
        shutil.copyfile(source + suffix, target + suffix)


def ladder(nursery, folder, call, fault):
    """Breaks the n-th call of the saves, for each n; returns how many there were."""
    for n in range(1, 200):
        inject = f"inject={CALLS[call]}:{fault}:when={n}"
        trace = f"trace={CALLS[call]}"
        results, status, log = nursery.run(folder / str(n), "-e", trace, "-e", inject)
        check(folder / str(n) / "saves", results)
        killed = os.WIFSIGNALED(status)
        if not killed and "(INJECTED)" not in log:
            assert results == [f"SAVED {step} {value}" for step, value in LATER]
            return n - 1
        if not killed:
            assert status == 0 and len(results) == len(LATER)
            # The fault happens once in each thread, so not all saves fail.
            assert any(line.startswith("SAVED") for line in results)
    raise AssertionError("there is no end of it")


# How often each call is made by three saves at least, one of them of a step that was saved.
RARE = [("ENOSPC", "link"), ("ENOSPC", "unlink")]
LEAST = {"rename": 12, "unlink": 9, "link": 3, "openat": 20, "fsync": 19}


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.parametrize(
    "fault, call",
    [
        pytest.param(*each, marks=pytest.mark.nightly)
        if each[1] == "openat" or each in RARE
        else each
        for each in itertools.product(["SIGKILL", "ENOSPC"], sorted(CALLS))
    ],
)
@pytest.mark.fault_row(19)
def test_every_call_of_a_save_may_be_the_last_or_fail(nursery, tmp_path, call, fault):
    option = {"SIGKILL": "signal=SIGKILL", "ENOSPC": "error=ENOSPC"}[fault]
    assert ladder(nursery, tmp_path, call, option) >= LEAST[call]


@pytest.mark.slow
@pytest.mark.fault_row(20)
def test_what_is_renamed_was_on_the_disk_before(nursery, tmp_path):
    kinds = ",".join(CALLS.values())
    _, status, log = nursery.run(tmp_path / "run", "-e", f"trace={kinds}")
    assert status == 0
    directory = str(tmp_path / "run" / "saves")
    safe, dirty, pointed, published, pointers = set(), False, True, 0, 0
    for line in log.splitlines():
        call = re.match(r"\d+ +(\w*)", line).group(1)
        paths = [path for path in re.findall(r'[<"]([^>"]*)[>"]', line) if directory in path]
        if call == "fsync" and paths:
            safe.add(paths[0])
            dirty = dirty and paths[0] != directory
        elif call.startswith("rename") and paths:
            source, target = paths
            if ".unfinished" not in target and ".replaced" not in target:
                assert source in safe, line
                published += 1
                pointed = not target.endswith(".index")
                if target.endswith("/checkpoint"):
                    assert not dirty, "the pointer is renamed before the names are on the disk"
                    pointers += 1
            safe.discard(source)
            dirty = True
        elif call.startswith("unlink") and re.search(r"model-\d+\.index\"", line):
            # An old one goes when the new one and the pointer are safe.
            assert pointed and not dirty, line
    assert (published, pointers) == (4 * len(LATER), len(LATER))
