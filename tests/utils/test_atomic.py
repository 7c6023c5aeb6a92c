"""Tests of `tensorpack.utils.atomic`."""

import os
import time

import pytest

from tensorpack.utils.atomic import (
    backup_name,
    keep_backup,
    move_to_backup,
    open_atomic,
    remove_temporaries,
    write_atomic,
)


def names(path):
    return sorted(os.listdir(str(path)))


def test_write_atomic_replaces_the_whole_content(tmp_path):
    path = tmp_path / "state"
    write_atomic(str(path), b"long content")
    write_atomic(str(path), b"short")
    assert path.read_bytes() == b"short" and names(tmp_path) == ["state"]


def test_write_atomic_takes_a_bare_name_and_the_usual_permissions(tmp_path, monkeypatch):
    monkeypatch.chdir(str(tmp_path))
    write_atomic("state", b"x")
    (tmp_path / "other").write_bytes(b"x")
    assert os.stat("state").st_mode == os.stat("other").st_mode


def test_a_failed_write_leaves_the_old_content(tmp_path):
    path = tmp_path / "state"
    path.write_bytes(b"old")
    with pytest.raises(KeyError):
        with open_atomic(str(path)) as file:
            file.write(b"new")
            assert path.read_bytes() == b"old"
            raise KeyError
    assert path.read_bytes() == b"old" and names(tmp_path) == ["state"]
    with pytest.raises(OSError) as caught:
        write_atomic(str(tmp_path / "none" / "state"), b"")
    assert str(tmp_path / "none") in caught.value.filename


def test_what_a_killed_process_left_is_removed_after_a_day_if_others_may_write_there(tmp_path):
    day = 86400
    for number, age in enumerate([day + 60, day - 60, -day]):
        path = tmp_path / f".file{number}.17-0123abcd.tmp"
        path.touch()
        os.utime(str(path), (time.time() - age,) * 2)
    (tmp_path / ".folder.17-0123abcd.tmp").mkdir()
    (tmp_path / "precious").touch()
    remove_temporaries(str(tmp_path))
    assert ".file0.17-0123abcd.tmp" not in names(tmp_path) and len(names(tmp_path)) == 4
    remove_temporaries(str(tmp_path), shared=False)
    assert names(tmp_path) == [".folder.17-0123abcd.tmp", "precious"]


@pytest.fixture
def now(monkeypatch):
    monkeypatch.setattr(time, "strftime", lambda form: ".0724-104313")


def texts(directory):
    return {path.name: path.read_text() for path in directory.iterdir()}


@pytest.mark.usefixtures("now")
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


def test_a_directory_is_moved_with_what_is_in_it_and_a_link_to_nothing_takes_a_name(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "file").write_text("text")
    (tmp_path / "run.old").symlink_to("nowhere")
    assert move_to_backup(str(tmp_path / "run"), ".old") == str(tmp_path / "run.old-1")
    assert texts(tmp_path / "run.old-1") == {"file": "text"} and not (tmp_path / "run").exists()


@pytest.mark.usefixtures("now")
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
