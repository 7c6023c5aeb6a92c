"""Runs command lines: in this process, as a user's shell would see them."""

from typing import NamedTuple

import pytest

from tensorpack.command.program import main


class Done(NamedTuple):
    """What a command line did."""

    code: int
    out: str
    err: str


@pytest.fixture
def tensorpack(capsys):
    """Runs a command line and returns its exit code and what it printed."""

    def run(*args):
        capsys.readouterr()  # what was printed before
        try:
            code = main([str(each) for each in args])
        except SystemExit as error:
            code = error.code
        return Done(code, *capsys.readouterr())

    return run
