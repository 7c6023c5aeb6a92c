"""What is said about a name that was mistyped, and about sizes, and not said about secrets."""

import ast
import os
import shlex
import subprocess
import sys

import pytest

from tensorpack.utils._words import (
    command_text,
    did_you_mean,
    did_you_mean_file,
    size_text,
    without_secrets,
)
from tests.checks import ROOT


def test_the_nearest_names_are_given():
    assert did_you_mean("cosst", ["cost", "score", "cost"]) == " Did you mean cost?"
    assert did_you_mean("model-1", ["model-2", "model-3"]).count(" or ") == 1
    assert did_you_mean("x", ["cost"]) == ""


def test_those_of_a_folder(tmp_path, monkeypatch):
    for name in ["model-50.index", "model-50.data", "other.index"]:
        (tmp_path / name).write_text("")
    wrong = str(tmp_path / "model-5")
    assert did_you_mean_file(wrong, ".index") == " Did you mean model-50?"
    assert "model-50.data" in did_you_mean_file(wrong)
    monkeypatch.chdir(tmp_path)
    assert did_you_mean_file("model-5", ".index") == " Did you mean model-50?"


def test_a_folder_that_is_missing_is_named(tmp_path):
    folder = str(tmp_path / "no")
    assert did_you_mean_file(os.path.join(folder, "model")) == f" There is no folder {folder}."
    (tmp_path / "no").write_text("")
    assert did_you_mean_file(os.path.join(folder, "model")) == ""


def test_sizes():
    texts = ["", "0 B", "999 B", "1.0 kB", "2.5 MB", "3.0 GB", "4.0 TB"]
    assert [size_text(each, "") for each in (None, 0, 999, 1000, 2.5e6, 3e9, 4e12)] == texts
    assert size_text(None) == "?"


def test_what_is_rounded_up_to_a_thousand_has_the_next_unit():
    sizes = (999_949, 999_960, 999_949_000, 999_960_000, 999_999_999_999, 999.7)
    texts = ["999.9 kB", "1.0 MB", "999.9 MB", "1.0 GB", "1.0 TB", "1.0 kB"]
    assert [size_text(each) for each in sizes] == texts


@pytest.mark.parametrize(
    "given, shown",
    [
        (["--api-key", "abc", "x"], ["--api-key", "***", "x"]),
        (["--wandb_api_key=abc"], ["--wandb_api_key=***"]),
        (["--access-key", "abc", "--key", "file"], ["--access-key", "***", "--key", "file"]),
        (["--Password", "p w"], ["--Password", "***"]),
        (["--no-token", "--lr", "1"], ["--no-token", "--lr", "1"]),
        (["db.secret=1"], ["db.secret=***"]),
        (["s3://me:pw@host/x"], ["s3://***@host/x"]),
        (["--url", "https://me:pw@host/x?a@b"], ["--url", "https://***@host/x?a@b"]),
        (["http://host", "me@host", ""], ["http://host", "me@host", ""]),
        (["--token"], ["--token"]),
        ([], []),
        (["--rom", "tokens.bin", "--seed", "3"], ["--rom", "tokens.bin", "--seed", "3"]),
    ],
)
def test_secrets_of_a_command_line_are_hidden(given, shown):
    assert without_secrets(given) == shown


PRINTS = "from tensorpack.utils import _words; print(_words.command_line())"
CHILD = f"""
from multiprocessing import get_context
def target():
    {PRINTS}
if __name__ == "__main__":
    process = get_context("spawn").Process(target=target)
    process.start()
    process.join()
"""
BECOMES = {"-m tensorpack tf1 train.py": "-m tensorpack.tf1 train.py"}


@pytest.mark.parametrize(
    "command",
    [
        f"-c '{PRINTS}' 3",
        "train.py",
        "-W ignore -X dev train.py --lr 1 'a b'",
        "-m package.module 3",
        "-m tensorpack.tf1 train.py --lr 1",
        "-m tensorpack.launch --workers 1 -m tensorpack.tf1 train.py 3",
        "-m tensorpack tf1 train.py",
        "child.py 3",
    ],
)
def test_the_command_is_the_one_that_was_given(tmp_path, command):
    (tmp_path / "package").mkdir()
    for name, text in [("train", PRINTS), ("package/module", PRINTS), ("child", CHILD)]:
        (tmp_path / f"{name}.py").write_text(text)
    output = subprocess.check_output(
        [sys.executable, *shlex.split(command)],
        cwd=str(tmp_path),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    )
    words = ast.literal_eval(output[output.index("['") :])
    assert words == [sys.executable, *shlex.split(BECOMES.get(command, command))]
    assert shlex.split(command_text(words)) == words
