"""The program `tensorpack`: its table, its errors and exit codes."""

import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from tensorpack._version import __version__
from tensorpack.command import doctor
from tensorpack.command.program import SUBCOMMANDS
from tests.checks import ROOT
from tests.conftest import HAS_TENSORFLOW


def python(*args, folders="", stdout=subprocess.PIPE, **keywords):
    env = {**os.environ, "PYTHONPATH": f"{folders}{os.pathsep}{ROOT}"}
    streams = {"stdin": subprocess.DEVNULL, "stdout": stdout, "stderr": subprocess.PIPE}
    command = [sys.executable, *map(str, args)]
    return subprocess.run(command, env=env, text=True, timeout=60, **streams, **keywords)


def start(*args, **keywords):
    return python("-m", "tensorpack", *args, **keywords)


def test_help_lists_every_subcommand(tensorpack):
    done = tensorpack("--help")
    assert done.code == 0
    shown = [line.split()[0] for line in done.out.splitlines() if line.startswith("    ")]
    assert [name for name in shown if name in SUBCOMMANDS] == list(SUBCOMMANDS)


def test_the_page_has_every_subcommand_and_no_other():
    page = (ROOT / "docs" / "command.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(`.*)\]\(#", page, re.MULTILINE)
    on_page = set(re.findall("`(.*?)`", " ".join(rows)))
    missing, more = sorted(set(SUBCOMMANDS) - on_page), sorted(on_page - set(SUBCOMMANDS))
    assert not missing, f"docs/command.md lacks a row for {missing}"
    assert not more, f"docs/command.md has a row for {more}, which is not in SUBCOMMANDS"


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from tensorpack.command.program import make_parser; make_parser()\n"
        "print(*({name.split('.')[0] for name in sys.modules} "
        "& {'numpy', 'tensorflow', 'tabulate', 'tqdm', 'matplotlib', 'asyncio'}))"
    )
    assert python("-c", code).stdout == "\n"


@pytest.mark.parametrize(
    "program, part", [("tensorpack", "argparse"), ("tensorpack.launch", "numpy")]
)
def test_a_program_that_is_interrupted_while_it_loads_says_nothing(program, part, tmp_path):
    """The part that it loads first of all stands for a signal at that moment."""
    module = "import os, signal; os.kill(os.getpid(), signal.SIGINT); raise SystemExit(7)"
    (tmp_path / f"{part}.py").write_text(module)
    keywords = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)}
    done = python("-m", program, "--help", folders=tmp_path, **keywords)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_doctor_prints_what_a_report_of_a_problem_needs(tensorpack):
    done = tensorpack("doctor")
    rows = dict(line.split(None, 1) for line in done.out.splitlines())
    assert done.code == 0 and rows["tensorpack"] == __version__
    assert "GPUs" in rows if HAS_TENSORFLOW else rows["tensorflow"] == "not installed"


@pytest.mark.parametrize(
    "error, code, text",
    [
        (KeyboardInterrupt(), 130, "tensorpack doctor: interrupted.\n"),
        (OSError(13, "No permission", "x"), 2, "doctor: error: [Errno 13] No permission: 'x'\n"),
        (ValueError("of a user's code"), 2, "in fail\n"),  # a traceback
    ],
)
def test_errors(monkeypatch, tensorpack, error, code, text):
    def fail(args):
        raise error

    monkeypatch.setattr(doctor, "run", fail)
    done = tensorpack("doctor")
    assert (done.code, done.out) == (code, "") and text in done.err


def test_a_reader_that_has_gone_is_no_error(tmp_path):
    np.savez(str(tmp_path / "a.npz"), W=np.zeros(1))
    read, write = os.pipe()
    os.close(read)
    done = start("inspect", tmp_path / "a.npz", stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def test_all_arguments_are_passed_on(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys; print(sys.argv[1:]); sys.exit(7)")
    for args in (["launch", "--workers", "1", script], ["tf1", script]):
        done = start(*args, "--help", "--json")
        assert done.returncode == 7 and "['--help', '--json']" in done.stdout
    assert "python -m tensorpack.launch" in start("launch", "--help").stdout
