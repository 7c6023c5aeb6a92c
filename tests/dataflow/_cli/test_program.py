"""`python -m tensorpack.dataflow` as a whole: its help, exit codes, Ctrl-C, and the log."""

import io
import os
import re
import signal
import subprocess
import sys

import pytest

from tensorpack.dataflow.__main__ import _print, main
from tests.checks import ROOT
from tests.dataflow._cli.files import facts, numbers, save
from tests.dataflow._cli.flows import HERE
from tests.harness import Child
from tests.processes import run_python

LONG = 60  # seconds; waited for in full only if the code is wrong
pytest.importorskip("msgpack")


@pytest.mark.parametrize(
    "command, words",
    [
        ([], ["bench", "show", "convert", "Exit codes: 0 done"]),
        (["bench"], ["--stages", "--processes N", "module is run", "(5000)"]),
        (["show"], ["--check", "--num N", ".tfrecord"]),
        (["convert"], ["--force", "--max-errors N", "--allow-pickle", "--dtypes"]),
    ],
)
def test_help(command, words, capsys):
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    assert caught.value.code == 0
    out = re.sub(r"\s+", " ", capsys.readouterr().out)
    for word in words:
        assert word in out


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["bench", "no_colon"],
        ["bench", f"{HERE}:twenty", "--size", "0"],
        ["bench", f"{HERE}:twenty", "--seconds", "nan"],
        ["show", "a", "--num", "-1"],
        ["show", "a", "--allow-pickle"],
        ["convert", "a", "b", "c"],
    ],
)
def test_a_wrong_command_line_exits_with_two(args, capsys):
    with pytest.raises(SystemExit) as caught:
        main(args)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == "" and "usage: python -m tensorpack.dataflow" in err


def test_an_error_has_no_traceback_unless_it_is_asked_for(run, tmp_path):
    missing = tmp_path / "missing.npz"
    for extra in [], ["--traceback"]:
        ran = run("show", missing, *extra)
        assert (ran.code, ran.out) == (1, "")
        assert ("Traceback" in ran.err) == bool(extra)
        assert ran.err.splitlines()[-1] == (
            f"python -m tensorpack.dataflow show: error: There is no file {missing} "
            f"(seen from {os.getcwd()})."
        )


def test_as_a_program(tmp_path):
    path = save(tmp_path / "a.npz", numbers(3))
    done = run_python("-m", "tensorpack.dataflow", "show", path, check=True)
    assert facts(done.stdout.decode())["datapoints"] == "3"


def test_a_result_leaves_at_once():
    raw = io.BytesIO()
    stream = io.TextIOWrapper(io.BufferedWriter(raw), encoding="ascii")
    _print(stream, "caf\u00e9 \x1b[2J")
    assert raw.getvalue().endswith(b"\n") and raw.getvalue().startswith(b"caf\\xe9 ")
    assert b"\x1b" not in raw.getvalue()


def test_its_output_has_no_reader(tmp_path):
    path = save(tmp_path / "a.npz", numbers(300))
    with subprocess.Popen(
        [sys.executable, "-m", "tensorpack.dataflow", "show", path, "--num", "300"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(LONG) == 0, err
    assert b"rror" not in err


PRINTING = """
import sys
from tensorpack.dataflow import DataFromGenerator

def flow():
    return DataFromGenerator(numbers)

def numbers():
    print("it has begun", flush=True)
    while True:
        yield [1]
"""


@pytest.mark.parametrize("options", [[], ["--processes", "2"]])
def test_ctrl_c(write, options):
    child = Child(
        "-m",
        "tensorpack.dataflow",
        "bench",
        f"{write(PRINTING)}:flow",
        *["--seconds", "1000", "--size", "1000000000", *options],
    )
    child.wait_for("it has begun")
    child.send(signal.SIGINT, group=True)
    assert child.end(LONG) == 130
    assert "bench: interrupted." in child.output
    assert "Traceback" not in child.output


def test_errors_of_the_package_are_sentences_and_others_have_a_place(fails, write, tmp_path):
    path = write("from tensorpack.dataflow import *\nflow = BatchData(FakeData([[1]]), 0)\n")
    assert fails("bench", f"{path}:flow").endswith(
        "error: BatchData: batch_size must be at least 1, but got 0."
    )
    path = write("raise KeyError('name')")
    assert "error: KeyError: name (" in fails("bench", f"{path}:flow")
