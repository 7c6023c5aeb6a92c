"""Runs commands, and writes the Python files that are named to them."""

from typing import NamedTuple

import pytest

from tensorpack.dataflow.__main__ import main


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys):
    """Runs a command in this process."""

    def run_main(*args):
        capsys.readouterr()  # what the test itself has logged
        code = main([str(each) for each in args])
        return Ran(code, *capsys.readouterr())

    return run_main


@pytest.fixture
def fails(run):
    """Runs a command that is to fail with a message; returns the message."""

    def run_failing(*args):
        ran = run(*args)
        assert ran.code == 1 and "Traceback" not in ran.err
        line = ran.err.splitlines()[-1]
        assert line.startswith(f"python -m tensorpack.dataflow {args[0]}: error: ")
        return line

    return run_failing


@pytest.fixture
def write(tmp_path):
    """Writes a Python file; returns the path of it."""

    def write_file(text, name="userflow.py"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write_file
