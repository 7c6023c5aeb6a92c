"""Rows 10, 38 and 40 of the matrix: the log directory, the files in it and the console."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.harness import ROOT, Child

from .surroundings import Surroundings
from .test_matrix import Case, run

FINISHES = Case(38, "finishes", 0, says=("PHASE done",), never=())


@pytest.mark.slow
@pytest.mark.fault_row(38)
def test_a_file_at_the_path_is_told_at_once(tmp_path):
    (tmp_path / "log").write_text("precious")
    case = Case(
        38, "finishes", 1, error=r"(NotADirectory|FileExists)Error: .*log", never=("Epoch",)
    )
    run(case, tmp_path)
    assert (tmp_path / "log").read_text() == "precious"


@pytest.mark.slow
@pytest.mark.fault_row(38)
def test_an_existing_directory_is_left_alone_where_nobody_can_be_asked(tmp_path):
    log = tmp_path / "log"
    log.mkdir()
    (log / "model-7.index").write_text("precious")
    case = FINISHES._replace(says=("PHASE done", "log-1"))
    around = Surroundings(tmp_path)
    child = Child("-m", "tests.faults", case.name, log, env=around.env)  # stdin is /dev/null
    assert child.end(timeout=60) == 0, child.output
    assert [each.name for each in log.iterdir()] == ["model-7.index"]
    assert (tmp_path / "log-1" / "stats.json").exists()
    assert around.leftovers() == []


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.6])
@pytest.mark.fault_row(40)
def test_a_truncated_file_of_statistics_does_not_stop_the_next_run(share, tmp_path):
    run(FINISHES._replace(row=40), tmp_path)
    path = tmp_path / "log" / "stats.json"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    run(Case(40, "continues", 0, says=("stats.json.corrupt",)), tmp_path, action="keep")
    corrupt = [each for each in os.listdir(str(path.parent)) if ".corrupt" in each]
    assert len(corrupt) == 1
    epochs = [each["epoch_num"] for each in json.loads(path.read_text())]
    assert epochs[-3:] == [4, 5, 6]


@pytest.mark.slow
@pytest.mark.fault_row(10)
def test_a_reader_that_goes_away_does_not_stop_the_run(tmp_path):
    around = Surroundings(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "tests.faults", "finishes", str(tmp_path / "log")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ, PYTHONPATH=str(ROOT), **around.env),
    )
    process.stdout.readline()
    process.stdout.close()  # as `| head -1` does
    errors = process.stderr.read().decode(errors="replace")
    process.stderr.close()
    assert process.wait(60) == 0, errors
    assert "Traceback" not in errors
    log = (tmp_path / "log" / "log.log").read_text()
    assert "Training has finished!" in log
    assert around.leftovers() == []


def can_mount():
    """Whether a private mount can be made: by root, where the container allows it."""
    if shutil.which("unshare") is None:
        return False
    probe = ["unshare", "-m", "mount", "-t", "tmpfs", "-o", "ro", "none", "/mnt"]
    return subprocess.run(probe, stderr=subprocess.DEVNULL).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="needs the right to mount")
@pytest.mark.fault_row(38)
def test_a_read_only_log_directory_is_told_before_anything_is_built(tmp_path):
    log, around = tmp_path / "readonly", Surroundings(tmp_path)
    log.mkdir()
    mount = 'mount -t tmpfs -o ro none "$1" && shift && exec "$@"'
    child = [sys.executable, "-m", "tests.faults", "finishes", str(log / "run")]
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
