"""Tests of `tensorpack.utils.atomic`."""

import os
import time

import pytest

from tensorpack.utils.atomic import backup_name, keep_backup, move_to_backup


@pytest.fixture(autouse=True)
def now(monkeypatch):
    monkeypatch.setattr(time, "strftime", lambda form: ".0724-104313")


def texts(directory):
    return {name: (directory / name).read_text() for name in os.listdir(str(directory))}


def test_nothing_is_overwritten(tmp_path):
    path = tmp_path / "log.log"
    for text in ("first", "second", "third"):
        path.write_text(text)
        assert not os.path.lexists(backup_name(str(path)))
        moved = move_to_backup(str(path))
    assert moved == str(tmp_path / "log.log.0724-104313-2")
    assert texts(tmp_path) == {
        "log.log.0724-104313": "first",
        "log.log.0724-104313-1": "second",
        "log.log.0724-104313-2": "third",
    }


def test_a_link_to_nothing_takes_a_name(tmp_path):
    os.symlink("nowhere", str(tmp_path / "a.old"))
    assert backup_name(str(tmp_path / "a"), ".old") == str(tmp_path / "a.old-1")


def test_a_directory_is_moved_with_what_is_in_it(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "file").write_text("text")
    assert move_to_backup(str(tmp_path / "run"), ".old") == str(tmp_path / "run.old")
    assert os.listdir(str(tmp_path)) == ["run.old"]
    assert texts(tmp_path / "run.old") == {"file": "text"}


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_is_kept_stays_under_its_name(tmp_path, monkeypatch, links):
    def refuse(*_):
        raise PermissionError("no links here")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "stats.json"
    path.write_text("old")
    assert keep_backup(str(path)) == str(tmp_path / "stats.json.0724-104313")
    assert texts(tmp_path) == {"stats.json": "old", "stats.json.0724-104313": "old"}
    same = os.path.samefile(str(path), str(path) + ".0724-104313")
    assert same == links
