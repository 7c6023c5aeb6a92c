"""`tensorpack completion` prints scripts that complete command lines, made from the parsers."""

import shutil
import subprocess
import sys

import pytest

from tensorpack.command.program import SUBCOMMANDS


@pytest.fixture
def complete(tensorpack, tmp_path):
    """Returns what bash offers for a command line, whose last word is not complete."""
    (tmp_path / "script").write_text(tensorpack("completion", "bash").out)
    (tmp_path / "a_file").write_text("")
    ask = 'source ./script; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_tensorpack; '
    ask += 'printf "%s\\n" "${COMPREPLY[@]}"'

    def run(*words):
        command = ["bash", "-c", ask, "bash", "tensorpack", *words]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=str(tmp_path), text=True
        )
        return done.stdout.split()

    return run


def test_subcommands(complete):
    assert complete("in") == ["inspect"]
    assert sorted(complete("")) == sorted(SUBCOMMANDS)


def test_options_choices_and_files(complete):
    assert complete("inspect", "--s") == ["--select", "--sort"]
    assert complete("inspect", "x", "--sort", "") == ["name", "size"]
    assert "a_file" in complete("inspect", "a")
    assert complete("inspect", "--check", "--mo") == ["--model"]


def test_the_options_of_launch(complete):
    assert complete("launch", "--h") == ["--help", "--hosts", "--host"]
    assert "-m" in complete("launch", "-")
    assert "a_file" in complete("launch", "a")


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_a_script_is_one_of_its_shell(shell, tensorpack, tmp_path):
    done = tensorpack("completion", shell)
    assert (done.code, done.err) == (0, "") and "doctor" in done.out
    if shutil.which(shell):
        (tmp_path / "script").write_text(done.out)
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)


def test_a_shell_that_is_not_known(tensorpack):
    done = tensorpack("completion", "csh")
    assert done.code == 2 and "bash, zsh, tcsh" in done.err and "not 'csh'" in done.err


def test_without_shtab(tensorpack, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    done = tensorpack("completion", "bash")
    assert done.code == 2 and "pip install shtab" in done.err
