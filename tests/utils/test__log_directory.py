"""Tests of `tensorpack.utils._log_directory`."""

import os

import pytest

from tensorpack.utils import _log_directory


def test_has_files(tmp_path):
    assert not _log_directory.has_files(str(tmp_path / "none"))
    assert not _log_directory.has_files(str(tmp_path))
    (tmp_path / ".hidden").write_text("")
    assert not _log_directory.has_files(str(tmp_path))
    (tmp_path / "file").write_text("")
    assert _log_directory.has_files(str(tmp_path))
    with pytest.raises(NotADirectoryError):
        _log_directory.has_files(str(tmp_path / "file"))


def test_make_numbered_skips_what_exists(tmp_path):
    base = str(tmp_path / "run")
    (tmp_path / "run-2").write_text("a file")
    assert [_log_directory.make_numbered(base) for _ in range(2)] == [base + "-1", base + "-3"]


def test_delete_refuses_a_parent_of_the_working_directory(tmp_path, monkeypatch):
    inside = tmp_path / "run" / "inside"
    inside.mkdir(parents=True)
    monkeypatch.chdir(str(inside))
    with pytest.raises(ValueError, match="not deleted"):
        _log_directory.delete(str(tmp_path / "run"))
    monkeypatch.chdir(str(tmp_path))
    _log_directory.delete("run")
    assert os.listdir(str(tmp_path)) == []
