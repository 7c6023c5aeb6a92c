import multiprocessing
import os
import time

import pytest

from tensorpack.callbacks.time_report import processor
from tensorpack.callbacks.time_report.processor import cpu_seconds, machine_seconds


def burn(seconds):
    """Uses the processor for so many seconds of it."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


@pytest.mark.timed
def test_what_this_process_uses():
    before, of_machine = cpu_seconds(), machine_seconds()
    burn(0.5)
    assert 0.4 <= cpu_seconds() - before < 5
    if of_machine is not None:
        assert 0.4 / os.cpu_count() <= machine_seconds() - of_machine < 60
    before = cpu_seconds()
    time.sleep(0.2)
    assert cpu_seconds() - before < 0.15


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="there is no /proc")
def test_what_a_child_uses_while_it_lives_and_after_it():
    def of_children():
        return cpu_seconds() - time.process_time()

    before = of_children()
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=sum, args=(range(10**12),))
    child.start()
    deadline = time.monotonic() + 60
    while of_children() - before < 0.3 and time.monotonic() < deadline:
        time.sleep(0.05)
    alive = of_children() - before
    child.terminate()
    child.join()
    assert 0.3 <= alive < 30
    assert of_children() - before >= alive - 0.05


@pytest.fixture
def proc(monkeypatch, tmp_path):
    """Writes the file that is read instead of those in /proc."""
    path = tmp_path / "stat"
    monkeypatch.setattr(processor, "open", lambda _, **__: open(str(path)), raising=False)
    return path.write_text


@pytest.mark.parametrize("text", ["", "cpu 1 2 three"])
def test_a_machine_that_does_not_tell(text, proc):
    proc(text)
    assert machine_seconds() is None


def test_the_kinds_of_time_that_count(monkeypatch, proc):
    proc("cpu  100 20 30 4000 500 6 7 8 90 9\ncpu0 1 2 3\n")
    monkeypatch.setattr(processor.os, "cpu_count", lambda: 3)
    monkeypatch.setattr(processor.os, "sysconf", lambda name: 100)
    assert machine_seconds() == pytest.approx(1.71 / 3)
