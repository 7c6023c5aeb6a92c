"""What is said about a name that was mistyped."""

import os

from tensorpack.utils._nearest import did_you_mean, did_you_mean_file


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
