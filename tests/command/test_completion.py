"""`tensorpack completion` prints scripts that complete command lines, made from the parsers."""

import shutil
import subprocess

import pytest

from tensorpack.command._table import SUBCOMMANDS


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """Returns what bash offers for a command line, whose last word is not complete."""
    from tensorpack.command import completion, program

    text = completion._bash(completion._commands(program.make_parser()))
    path = tmp_path_factory.mktemp("bash") / "script"
    path.write_text(text)
    ask = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tensorpack; '
    ask += 'printf "%s\\n" "${COMPREPLY[@]}"'

    def run(*words):
        command = ["bash", "-u", "-c", ask, "bash", str(path), "tensorpack", *words]
        return subprocess.check_output(command, text=True).split()

    return run


def test_subcommands(complete):
    assert complete("in") == ["inspect"]
    assert complete("") == [*SUBCOMMANDS, "--help", "--version"]


def test_options_choices_and_files(complete):
    assert complete("inspect", "--s") == ["--select", "--sort"]
    assert complete("inspect", "x", "--sort", "") == ["name", "size"]
    assert complete("completion", "") == ["bash", "zsh", "fish"]
    assert complete("inspect", "") == []  # files, by `complete -o default`
    assert complete("inspect", "--select", "-") == []
    assert complete("inspect", "--check", "--mo") == ["--model"]
    assert complete("plot", "-") == ["-h", "--help", *complete("plot", "-")[2:]]


def test_the_options_of_launch(complete):
    assert complete("launch", "--h") == ["--help", "--hosts", "--host"]
    assert complete("launch", "--workers", "-") == []
    assert "-m" in complete("launch", "-")
    assert complete("launch", "") == []  # files: the script


def test_the_script_is_what_the_command_prints(tensorpack):
    done = tensorpack("completion", "bash")
    assert (done.code, done.err) == (0, "")
    assert done.out.endswith("complete -o bashdefault -o default -F _tensorpack tensorpack\n")
    assert tensorpack("completion", "csh").code == 2


def test_zsh_quotes_what_is_special(tensorpack, tmp_path):
    out = tensorpack("completion", "zsh").out
    assert out.startswith("#compdef tensorpack\n")
    assert "\n    'doctor:check this machine: packages" in out
    assert "'--sort[the order (name)]:value:(name size)'" in out
    assert "with the model'\\''s code" in out
    if shutil.which("zsh"):
        (tmp_path / "script").write_text(out)
        subprocess.run(["zsh", "-n", str(tmp_path / "script")], check=True)


def test_fish(tensorpack, tmp_path):
    out = tensorpack("completion", "fish").out
    assert "-n __fish_use_subcommand -f -a doctor -d 'check this machine:" in out
    assert (
        "complete -c tensorpack -n '__fish_seen_subcommand_from inspect' -l sort "
        "-x -a 'name size' -d 'the order (name)'\n"
    ) in out
    assert " -s o -l out -r -d " in out
    if shutil.which("fish"):
        (tmp_path / "script").write_text(out)
        subprocess.run(["fish", "-n", str(tmp_path / "script")], check=True)
