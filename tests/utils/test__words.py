"""What is said about a name that was mistyped, and about sizes, and not said about secrets."""

import os

import pytest

from tensorpack.utils._words import (
    did_you_mean,
    did_you_mean_file,
    size_text,
    without_secrets,
)


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
