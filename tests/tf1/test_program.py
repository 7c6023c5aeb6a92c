"""`python -m tensorpack.tf1 script.py` runs a script as `python script.py` does."""

import os
import subprocess
import sys

import pytest

from tensorpack.tf1 import ABSENT, FOLDER
from tests.checks import ROOT

SEEN = f"""'''A docstring.'''
import sys
print(__name__, __doc__, __file__, __package__, __spec__, __cached__, sys.argv)
print([entry for entry in sys.path if entry not in {(FOLDER, ABSENT)}])
print(vars(sys.modules["__main__"]) is globals(), __loader__.path, __builtins__.len)
"""
SCRIPTS = {
    "names": SEEN,
    "ends": "import atexit\natexit.register(print, 'last')\nprint('first')",
    "exit text": "import sys\nsys.exit('a reason')",
    "interrupt and exit": "class E(SystemExit, KeyboardInterrupt): pass\nraise E(130)",
    "error": "def f():\n    raise ValueError('why')\n\nf()",
    "syntax error": "x = 1\ny = = 2\n",
    "not utf-8": "# coding: latin-1\nprint(ascii('\u00e4'))",
    "own hook": "import sys\nsys.excepthook = lambda *a: print(a[:2])\nraise KeyError(1)",
    "Ctrl-C": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass",
    "future": "from __future__ import annotations\ndef f(x: y): pass\nprint(f.__annotations__)",
}


def run(*args, cwd, **env):
    return subprocess.run(
        [sys.executable, *map(str, args)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=str(cwd),
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        timeout=120,
    )


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_as_python_runs_it(text, tmp_path):
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "script.py").write_bytes(text.encode("latin-1"))
    args = ["scripts/script.py", "-x", "--help", "--", "last one"]
    plain = run(*args, cwd=tmp_path)
    ours = run("-m", "tensorpack.tf1", *args, cwd=tmp_path)
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)
    assert ours.stderr == plain.stderr


def test_a_linked_script_is_in_the_folder_of_its_file(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "script.py").write_text(SEEN)
    os.symlink(str(tmp_path / "real" / "script.py"), str(tmp_path / "link.py"))
    plain = run("link.py", cwd=tmp_path)
    assert run("-m", "tensorpack.tf1", "link.py", cwd=tmp_path).stdout == plain.stdout
    assert str(tmp_path / "real") in plain.stdout


def test_help(tmp_path):
    for flag in "-h", "--help":
        done = run("-m", "tensorpack.tf1", flag, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        for word in "SCRIPT [ARG ...]", "pip install tf-keras tf-slim", "migration.md":
            assert word in done.stdout


@pytest.mark.parametrize(
    "args, message",
    [
        ([], "the following arguments are required: SCRIPT"),
        (["absent.py"], "can't open file 'absent.py': [Errno 2] No such file or directory"),
    ],
)
def test_a_wrong_command_line_exits_with_two(args, message, tmp_path):
    done = run("-m", "tensorpack.tf1", *args, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == f"python -m tensorpack.tf1: error: {message}"


def test_it_loads_no_tensorflow_before_the_script_does(tmp_path):
    (tmp_path / "script.py").write_text(
        "import os, sys\n"
        "assert 'tensorflow' not in sys.modules and 'TF_USE_LEGACY_KERAS' not in os.environ\n"
    )
    done = run("-m", "tensorpack.tf1", "script.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
