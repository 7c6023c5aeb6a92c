"""Rows 38 and 40 of the matrix: the log directory and the files in it."""

import json
import os
import subprocess
import sys

import pytest

from tests.harness import ROOT

from .enclosed import can_mount
from .run_case import CASES, Case, Surroundings

FINISHES = Case(38, "finishes", 0, says=("PHASE done",), never=())


@pytest.mark.slow
@pytest.mark.fault_row(38)
def test_a_file_at_the_path_is_told_at_once(run, tmp_path):
    (tmp_path / "log").write_text("precious")
    case = Case(
        38, "finishes", 1, error=r"(NotADirectory|FileExists)Error: .*log", never=("Epoch",)
    )
    run(case)
    assert (tmp_path / "log").read_text() == "precious"


@pytest.mark.slow
@pytest.mark.fault_row(38)
def test_an_existing_directory_is_left_alone_without_a_terminal(start, tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    (log / "model-7.index").write_text("precious")
    with start(FINISHES) as running:  # its standard input is /dev/null
        assert running.child.end(timeout=60) == 0, running.child.output
    assert [path.name for path in log.iterdir()] == ["model-7.index"]
    assert (tmp_path / "log-1" / "stats.json").exists()
    assert running.around.leftovers() == []


@pytest.mark.slow
@pytest.mark.fault_row(40)
def test_a_truncated_file_of_statistics_does_not_stop_the_next_run(run, tmp_path):
    run(FINISHES._replace(row=40))
    path = tmp_path / "log" / "stats.json"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * 0.6)])
    run(Case(40, "continues", 0, says=("stats.json.corrupt",)), action="keep")
    corrupt = [name for name in os.listdir(str(path.parent)) if ".corrupt" in name]
    assert len(corrupt) == 1
    epochs = [epoch["epoch_num"] for epoch in json.loads(path.read_text())]
    assert epochs[-3:] == [4, 5, 6]


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="needs the right to mount")
@pytest.mark.fault_row(38)
def test_a_read_only_log_directory_is_told_before_anything_is_built(tmp_path):
    log, around = tmp_path / "readonly", Surroundings(tmp_path)
    log.mkdir()
    mount = 'mount -t tmpfs -o ro none "$1" && shift && exec "$@"'
    child = [sys.executable, "-m", CASES, "finishes", str(log / "run")]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", mount, "sh", str(log)] + child,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=dict(os.environ, PYTHONPATH=str(ROOT), **around.env),
        timeout=60,
    )
    output = done.stdout.decode(errors="replace")
    assert done.returncode == 1
    assert output.count("Traceback") == 1
    assert output.rstrip().endswith(f"Read-only file system: '{log / 'run'}'")
    assert "Epoch" not in output and "PHASE" not in output
    assert around.leftovers() == []
