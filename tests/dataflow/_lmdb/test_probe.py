"""A file is looked at in a process of its own, whose end tells whether it can be read."""

import pytest

from tensorpack.dataflow._lmdb import probe as probe_module
from tensorpack.dataflow._lmdb.probe import probe
from tensorpack.dataflow.lmdb import DamagedLMDB, LMDBData

pytestmark = pytest.mark.fault_row(32)


@pytest.mark.parametrize(
    "program, error, message",
    [
        ("import os; os.kill(os.getpid(), 11)", DamagedLMDB, "crashed on it.*SIGSEGV"),
        ("import os; os.kill(os.getpid(), 7)", DamagedLMDB, "crashed on it.*SIGBUS"),
        ("raise SystemExit(3)", RuntimeError, "code 3.*pass probe=False"),
        ("raise KeyError('deep inside')", RuntimeError, "(?s)code 1.*deep inside"),
        ("print('{ 3'); raise SystemExit(3)", RuntimeError, "code 3"),
    ],
)
def test_the_process_that_checks_fails(whole, monkeypatch, program, error, message):
    monkeypatch.setattr(probe_module, "_PROGRAM", program)
    with pytest.raises(error, match=message) as caught:
        LMDBData(whole)
    assert whole in str(caught.value)


def test_the_process_that_checks_hangs(whole, monkeypatch):
    monkeypatch.setattr(probe_module, "_PROGRAM", "import time; time.sleep(1000)")
    monkeypatch.setattr(probe_module, "_SECONDS", 0.3)
    with pytest.raises(RuntimeError, match="took more than 0 s. If you trust the file"):
        LMDBData(whole)


def test_the_process_that_checks_takes_nothing_from_the_working_directory(
    whole, tmp_path, monkeypatch
):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in "json", "struct", "runpy", "lmdb":
        (folder / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(folder)
    probe(whole)
