"""Log directories that another person made: nothing outside them is read, written or removed."""

import os
from functools import partial

import pytest

from tensorpack.utils import logger
from tensorpack.utils._directory_lock import DirectoryLock
from tensorpack.utils.checkpoints import (
    CheckpointCorrupt,
    CheckpointStore,
    DirectoryReplaced,
    NoValidCheckpoint,
    copy_checkpoint,
    find_restore_point,
    newest_valid,
    pointed_to,
)
from tensorpack.utils.checkpoints.files import _sealed, read_manifest
from tensorpack.utils.untrusted import UnsafeFile, open_untrusted
from tests.utils.checkpoints.test_states import write_variables

pytestmark = pytest.mark.fault_row(48)

DATA = ".data-00000-of-00001"
write = partial(write_variables, "values")


@pytest.fixture
def log(tmp_path):
    """A log directory with two whole checkpoints, beside a precious file."""
    (tmp_path / "precious.txt").write_text("precious")
    store = CheckpointStore(str(tmp_path / "log"))
    for step in (1, 2):
        store.save(step, write, {"step": step})
    return tmp_path / "log"


def find(log):
    return find_restore_point(str(log))


def forge(log, files, step=2):
    """Replaces the manifest by a consistent one that names other files."""
    content = dict(read_manifest(str(log / "model-1")), files=files, step=step)
    (log / f"model-{step}.manifest.json").write_bytes(_sealed(content))


ENTRY = {"sha256": "0" * 64, "size": 8}


@pytest.mark.parametrize(
    "name",
    [
        "/../../precious.txt",
        "/../model-1.index",
        "../precious.txt",
        "",
        ".",
        "..",
        ".a/../../../precious.txt",
        ".a\0",
        ".a\n",
        "." + "a" * 5000,
    ],
)
def test_a_manifest_names_only_files_of_its_checkpoint(log, name):
    forge(log, {name: ENTRY, ".index": ENTRY})
    with pytest.raises(CheckpointCorrupt, match="names files that no checkpoint has"):
        read_manifest(str(log / "model-2"))
    assert find(log).state == {"step": 1}
    os.remove(str(log / "model-2.index"))
    (log / "checkpoint").unlink()
    CheckpointStore(str(log))  # removes what a cut deletion has left
    assert (log.parent / "precious.txt").read_text() == "precious"
    assert read_manifest(str(log / "model-1")) is not None


@pytest.mark.parametrize(
    "entry",
    [
        {},
        [],
        None,
        {"sha256": 1, "size": 8},
        {"sha256": "0" * 64, "size": -1.5},
        dict(ENTRY, more=1),
    ],
    ids=str,
)
def test_entries_of_other_types(log, entry):
    forge(log, {".index": entry})
    assert find(log).state == {"step": 1}


@pytest.mark.parametrize(
    "data",
    [b"[" * 100000, b'{"a":' * 5000, b"1" * 1000000, b"\xff\0", b"null", b'{"files": 1e999}'],
    ids=lambda data: data[:6].decode("latin1"),
)
def test_nonsense_in_a_manifest(log, data):
    (log / "model-2.manifest.json").write_bytes(data)
    assert find(log).state == {"step": 1}


def put(kind, path):
    """Puts a file of a hostile kind in the place of another one."""
    if os.path.lexists(str(path)):
        path.unlink()
    if kind == "link":
        path.symlink_to(path.parent.parent / "precious.txt")
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "fifo":
        os.mkfifo(str(path))
    elif kind == "directory":
        path.mkdir()
    else:
        with open(str(path), "wb") as file:
            file.truncate(8 << 30)


KINDS = ["link", "loop", "device", "fifo", "directory", "8 GB"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("suffix", [".manifest.json", ".index", DATA, ".state"])
def test_files_that_are_not_regular_are_passed_over(log, suffix, kind):
    put(kind, log / ("model-2" + suffix))
    assert find(log).state == {"step": 1}
    assert newest_valid(str(log)) is not None
    with pytest.raises((CheckpointCorrupt, OSError)):
        copy_checkpoint(str(log / "model-2"), str(log / "best"))
    assert not list(log.glob("best*"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_pointer_that_is_not_a_regular_file(log, kind, monkeypatch):
    warnings = []
    monkeypatch.setattr(logger, "warning", lambda text, *args: warnings.append(text))
    put(kind, log / "checkpoint")
    assert pointed_to(str(log)) == [] and "is ignored" in warnings[0]
    assert find(log).state == {"step": 2}
    if kind != "directory":
        CheckpointStore(str(log)).save(3, write, {"step": 3})
        assert find(log).state == {"step": 3}
    assert (log.parent / "precious.txt").read_text() == "precious"


@pytest.mark.parametrize(
    "name", ["../precious", "/etc/passwd", "a" * 5000, "a\0b", "..", ".", "", r"\057etc\057passwd"]
)
def test_names_in_the_pointer(log, name):
    lines = f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "{name}"\n'
    (log / "checkpoint").write_bytes(lines.encode())
    assert pointed_to(str(log)) == []
    assert find(log).state == {"step": 2}


def test_the_pointer_of_another_program(log):
    os.rename(str(log), str(log.parent / "\xe4 log"))
    text = 'model_checkpoint_path: "m\\303\\244-1"\n  all_model_checkpoint_paths:"b"\n'
    (log.parent / "\xe4 log" / "checkpoint").write_text(text)
    found = pointed_to(str(log.parent / "\xe4 log"))
    assert [os.path.basename(path) for path in found] == ["b", "m\xe4-1"]


@pytest.mark.parametrize("kind", ["link", "loop", "device", "fifo", "directory"])
def test_a_lock_that_is_not_a_regular_file(log, kind):
    put(kind, log / ".lock")
    with pytest.raises(OSError):
        DirectoryLock(str(log))
    assert (log.parent / "precious.txt").read_text() == "precious"


def test_links_in_the_place_of_temporary_files(log):
    for name in ("checkpoint.unfinished", "model-3.unfinished.index", "best.unfinished.index"):
        (log / name).symlink_to(log.parent / "precious.txt")
    store = CheckpointStore(str(log))
    (log / "checkpoint.unfinished").symlink_to(log.parent / "precious.txt")
    with pytest.raises(OSError):
        store.save(3, write)
    store.save(3, write)
    copy_checkpoint(str(log / "model-3"), str(log / "best"))
    assert (log.parent / "precious.txt").read_text() == "precious"


def test_names_that_no_file_can_have():
    for name in ("a\0b", "a" * 5000):
        with pytest.raises(UnsafeFile):
            open_untrusted(name)


def test_all_damaged_is_one_named_error(log):
    for step in (1, 2):
        put("fifo", log / f"model-{step}.index")
    with pytest.raises(NoValidCheckpoint, match="(?s)model-2.*Not a regular file.*model-1"):
        find(log)


def test_a_run_does_not_save_into_the_directory_of_another(log):
    store = CheckpointStore(str(log))
    log.rename(log.parent / "renamed")
    CheckpointStore(str(log)).save(7, write, {"step": 7})
    before = sorted(os.listdir(str(log)))
    for _ in range(2):
        with pytest.raises(DirectoryReplaced, match="log is not the one .* renamed"):
            store.save(3, write, {"step": 3})
    assert sorted(os.listdir(str(log))) == before


def test_a_directory_that_was_removed_is_made_again_and_locked(log):
    store = CheckpointStore(str(log))
    log.rename(log.parent / "renamed")
    store.save(3, write, {"step": 3})
    assert find(log).state == {"step": 3}
    with pytest.raises(OSError, match="used by another run"):
        DirectoryLock(str(log))
    store.save(4, write, {"step": 4})


def names(directory):
    return sorted(os.listdir(str(directory)))


@pytest.mark.fault_row(55)
def test_a_lock_that_was_removed_is_made_again(log):
    with DirectoryLock(str(log)):
        store = CheckpointStore(str(log))
        (log / ".lock").unlink()
        store.save(3, write, {"step": 3})
        with pytest.raises(OSError, match="used by another run"):
            DirectoryLock(str(log))
        store.save(4, write, {"step": 4})


@pytest.mark.fault_row(55)
@pytest.mark.parametrize("alive", [True, False])
def test_a_run_does_not_save_where_another_has_come_after_its_lock_was_removed(log, alive):
    with DirectoryLock(str(log)):
        store = CheckpointStore(str(log))
        (log / ".lock").unlink()
        other = DirectoryLock(str(log))
        if not alive:
            other.release()
        before = names(log)
        for _ in range(2):
            with pytest.raises(DirectoryReplaced, match="/.lock is not the one .* another run"):
                store.save(3, write, {"step": 3})
        assert names(log) == before
        other.release()
