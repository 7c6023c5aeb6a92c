"""The jobs of `make bench`: each has its script and peers; what a script does becomes a result."""

import json
import sys

import pytest
import run_all
from run_all import HERE, JOBS, Job, chosen

PRINTS = """
import json
print("a table")
print('RESULT {"figure": "R5", "what": "step", "value": 2.0}')
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a program as a job."""
    monkeypatch.setattr(run_all, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(run_all, "versions_of", lambda environment: "1.0")

    def run(code, minutes=1.0):
        script = tmp_path / "script.py"
        script.write_text(code, encoding="utf-8")
        job = Job("R5", "a step", (str(script),), minutes)
        return run_all.run("R5", job, quick=False)

    return run


def test_every_peer_has_its_list_of_pinned_packages():
    lists = {f".venv-peer-{path.stem}": path for path in (HERE / "peers").glob("*.txt")}
    assert set(lists) == {peer for job in JOBS.values() for peer in job.peers}
    for path in lists.values():
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line[0] != "#"]
        assert [line for line in lines if "==" not in line and "<" not in line] == []


def test_every_figure_has_a_script_that_says_how_it_is_run():
    assert {job.figure for job in JOBS.values()} == {f"R{i}" for i in (*range(1, 12), 13, 17)}
    for job in JOBS.values():
        name = job.command[0]
        assert f"python benchmarks/{name}" in (HERE / name).read_text(encoding="utf-8")


def test_a_figure_is_all_of_its_jobs():
    assert chosen("r9,R5") == ["R5", "R5-tf1", "R9"]
    assert chosen(None) == list(JOBS)
    with pytest.raises(SystemExit, match="R12"):
        chosen("R1,R12")


def test_a_result_has_its_rows_and_keeps_what_was_printed(run):
    done = run(PRINTS)
    assert done["status"] == "ok"
    assert [(row["what"], row["value"]) for row in done["rows"]] == [("step", 2.0)]
    assert done["versions"] == {".venv": "1.0"}
    assert json.loads(json.dumps(done)) == done
    assert "a table" in (run_all.LOGS / "R5.txt").read_text(encoding="utf-8")


def test_a_script_that_fails_is_known_by_its_exit_code(run):
    assert run(PRINTS + "raise SystemExit(3)")["status"] == "failed with exit code 3"


def test_a_script_that_hangs_is_killed_with_its_children(tmp_path):
    code = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print('begun', flush=True)\n"
        "time.sleep(600)\n"
    )
    # the child has the same standard output: reading it ends only when both are gone
    text, status = run_all._output([sys.executable, "-c", code], limit=2)
    assert (text, status) == ("begun\n", "failed: not ready after 0 min")


def test_what_needs_a_peer_that_is_not_installed_is_left_out(monkeypatch, capsys):
    job = Job("R3", "a peer", ("r3_sb3.py",), 1.0, peers=(".venv-peer-nobody",))
    monkeypatch.setitem(JOBS, "R3", job)
    done = run_all.run_jobs(["R3"], quick=True)["R3"]
    assert (done["status"], done["rows"]) == ("not measured: run make bench-peers", [])
    out, err = capsys.readouterr()
    assert "not measured: run make bench-peers" in out
    assert "warning: R3 is not measured" in err


def test_versions_are_those_of_the_environment():
    assert run_all.versions_of(".venv").startswith(f"Python {sys.version.split()[0]}, ")
    assert "numpy " in run_all.versions_of(".venv")
