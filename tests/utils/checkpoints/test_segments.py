"""Tests of `tensorpack.utils.checkpoints.segments`."""

import errno
import hashlib
import os
import stat

import numpy as np
import pytest

from tensorpack.utils import logger
from tensorpack.utils.checkpoints import segments
from tensorpack.utils.checkpoints.segments import (
    PendingSegments,
    SavedSegments,
    SegmentDamaged,
    Segments,
    SegmentStore,
    load_segments,
)
from tensorpack.utils.serialize import dumps, loads


@pytest.fixture
def store(tmp_path):
    return SegmentStore(tmp_path / "segments")


@pytest.fixture
def warnings(monkeypatch):
    tape = []
    monkeypatch.setattr(logger, "warning", lambda msg, *args: tape.append(msg % args))
    return tape


def names(store):
    return sorted(os.listdir(store.directory)) if os.path.isdir(store.directory) else []


def arrays(count=3):
    return {"state": np.arange(count * 4, dtype=np.uint8).reshape(count, 4), "r": np.ones(count)}


class Owner:
    """Has segments and writes down what it hears of them."""

    def __init__(self, *new, saved=(), error=None):
        self.heard = []
        self._error = error
        self.leaf = Segments(saved, [({"i": i}, each) for i, each in enumerate(new)], self._done)

    def _done(self, refs):
        self.heard.append(refs)
        if self._error is not None:
            raise self._error


def equal(left, right):
    return list(left) == list(right) and all(
        left[key].dtype == right[key].dtype and np.array_equal(left[key], right[key])
        for key in left
    )


# The store.


def test_a_segment_comes_back(store):
    ref = store.write({"lane": 1, "text": ["a", None, 0.5]}, arrays())
    assert ref.name == "segment-00000001.seg"
    assert ref.meta == {"lane": 1, "text": ["a", None, 0.5]}
    with open(os.path.join(store.directory, ref.name), "rb") as file:
        data = file.read()
    assert (ref.size, ref.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert equal(store.read(ref), arrays())
    assert store.read(ref)["r"].flags.writeable


def test_views_that_are_not_contiguous(store):
    whole = np.random.RandomState(0).randint(0, 256, (70, 1000, 60), np.uint8)  # several pieces
    views = {"a": whole[3:50, ::2], "b": whole.T, "c": whole[::-1], "d": whole[:0], "e": whole[5]}
    assert equal(store.read(store.write({}, views)), views)
    assert store.read(store.write({}, {})) == {}


def test_nothing_is_made_before_the_first_write(store):
    store.delete_others([])
    assert names(store) == [] and not os.path.exists(store.directory)


def test_no_name_is_given_twice(store):
    refs = [store.write({}, arrays()) for _ in range(3)]
    assert [ref.name for ref in refs] == [f"segment-0000000{i}.seg" for i in (1, 2, 3)]
    store.delete_others([refs[0].name])
    assert store.write({}, arrays()).name == "segment-00000004.seg"
    other = SegmentStore(store.directory)  # a later process
    assert other.write({}, arrays()).name == "segment-00000005.seg"
    for name in ("segment-99999999.seg", "segment-x.seg", "segment-000000007.seg", "other"):
        open(os.path.join(store.directory, name), "wb").close()
    assert other.write({}, arrays()).name == "segment-100000000.seg"
    assert other.write({}, arrays()).name == "segment-100000001.seg"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_the_bytes_are_on_the_disk_before_the_name_is(store, monkeypatch):
    real_fsync, real_replace, tape = os.fsync, os.replace, []

    def fsync(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        size = "folder" if is_folder else os.fstat(descriptor).st_size
        tape.append(("fsync", os.path.basename(path), size))
        real_fsync(descriptor)

    def replace(source, target):
        tape.append(("replace", os.path.basename(str(source)), os.path.basename(str(target))))
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    ref = store.write({}, arrays())
    temporary = tape[1][1]
    assert segments._TEMPORARY.fullmatch(temporary)
    parent = os.path.basename(os.path.dirname(store.directory))
    assert tape == [
        ("fsync", parent, "folder"),
        ("fsync", temporary, ref.size),
        ("replace", temporary, ref.name),
        ("fsync", "segments", "folder"),
    ]


@pytest.mark.parametrize("step", ["write", "fsync", "replace", "folder"])
def test_a_failed_write_leaves_no_file(store, step, monkeypatch):
    store.write({}, arrays())

    def full(*args):
        if step == "write":
            args[1].write(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    targets = {
        "folder": "tensorpack.utils.atomic.fsync_path",
        "write": "tensorpack.utils.checkpoints.segments.dump_hashed",
    }
    monkeypatch.setattr(targets.get(step, f"os.{step}"), full)
    with pytest.raises(OSError) as caught:
        store.write({}, arrays())
    assert caught.value.errno == errno.ENOSPC
    assert names(store) == ["segment-00000001.seg"]
    monkeypatch.undo()
    assert store.write({}, arrays()).name == "segment-00000003.seg"


def test_any_damage_is_found(store):
    ref = store.write({"a": 1}, arrays(2))
    path = os.path.join(store.directory, ref.name)
    with open(path, "rb") as file:
        data = file.read()
    damaged = [data[:size] for size in range(len(data))] + [data + b"\0"]
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 8
        damaged.append(bytes(flipped))
    for content in damaged:
        with open(path, "wb") as file:
            file.write(content)
        with pytest.raises(SegmentDamaged) as caught:
            store.read(ref)
        assert caught.value.path == path and path in str(caught.value)
    os.remove(path)
    with pytest.raises(SegmentDamaged, match="it is missing") as caught:
        store.read(ref)
    assert caught.value.reason == "it is missing"


def test_no_other_segment_is_read(store):
    one, two = store.write({}, {"a": np.zeros(3)}), store.write({}, {"a": np.ones(3)})
    assert one.size == two.size
    with pytest.raises(SegmentDamaged, match="SHA-256"):
        store.read(one._replace(name=two.name))


def test_delete_others(store):
    refs = [store.write({}, arrays()) for _ in range(3)]
    foreign = ["x.seg", "segment-00000009.seg.tmp", ".other.1-a.tmp", "segment-9.seg", "notes"]
    stale = ".segment-00000009.seg.123-deadbeef.tmp"
    for name in foreign + [stale]:
        open(os.path.join(store.directory, name), "wb").close()
    store.delete_others([refs[1].name, "segment-00000077.seg"])
    assert names(store) == sorted(foreign + [refs[1].name])
    store.delete_others([])
    assert names(store) == sorted(foreign)


def test_what_cannot_be_deleted_is_warned_of(store, warnings, monkeypatch):
    first, second = store.write({}, arrays()), store.write({}, arrays())
    real = os.remove

    def remove(path):
        if path.endswith(first.name):
            raise PermissionError(errno.EACCES, "Permission denied")
        real(path)

    monkeypatch.setattr(os, "remove", remove)
    store.delete_others([])
    assert names(store) == [first.name] and second.name not in names(store)
    assert len(warnings) == 1 and first.name in warnings[0] and "denied" in warnings[0]


# Trees.


def save(tree, store):
    """The state as it is written, and what tells the owners."""
    pending = PendingSegments(tree, store)
    return pending.write(), pending


def test_a_state_with_segments_comes_back(store):
    old = store.write({"i": 9}, arrays(1))
    owners = [Owner(arrays(2), arrays(3), saved=[old]), Owner(), Owner(arrays(4))]
    tree = {"a": {"entries": owners[0].leaf}, "b": [(owners[1].leaf, None), owners[2].leaf]}
    written, pending = save(tree, store)
    assert [owner.heard for owner in owners] == [[], [], []]
    pending.done(True)
    loaded = load_segments(loads(dumps(written)), list)
    saved = [loaded["a"]["entries"], loaded["b"][0][0], loaded["b"][1]]
    assert [owner.heard for owner in owners] == [[refs] for refs in saved]
    assert saved[0][0] == old and [ref.meta["i"] for ref in saved[0]] == [9, 0, 1]
    assert pending.names == {ref.name for refs in saved for ref in refs}
    counts = [[len(store.read(ref)["r"]) for ref in refs] for refs in saved]
    assert counts == [[1, 2, 3], [], [4]]
    assert loaded["b"][0][1] is None and list(loaded) == list(tree)
    assert tree["a"]["entries"] is owners[0].leaf, "the state itself is not changed"


def test_the_next_save_writes_only_what_is_new(store):
    first = Owner(arrays(1))
    save(first.leaf, store)[1].done(True)
    second = Owner(arrays(2), saved=first.heard[0])
    written, pending = save([second.leaf, second.leaf], store)  # in two places, written once
    pending.done(True)
    assert names(store) == ["segment-00000001.seg", "segment-00000002.seg"]
    assert second.heard[0][:1] == first.heard[0] and len(second.heard) == 1
    assert load_segments(written, list) == second.heard * 2


@pytest.mark.parametrize("bad", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()], ids=repr)
def test_if_one_write_fails_the_others_are_deleted(store, bad, monkeypatch):
    old = store.write({}, arrays())
    owners = [Owner(arrays(), saved=[old]), Owner(arrays(), arrays())]
    real, count = store.write, []

    def write(meta, parts):
        count.append(1)
        if len(count) == 3:
            raise bad
        return real(meta, parts)

    monkeypatch.setattr(store, "write", write)
    pending = PendingSegments([owner.leaf for owner in owners], store)
    with pytest.raises(type(bad)):
        pending.write()
    pending.done(False)
    assert names(store) == [old.name]
    assert [owner.heard for owner in owners] == [[None], [None]]


def test_done_tells_all_and_deletes_what_is_not_needed(store):
    owners = [Owner(arrays(), error=KeyError("first")), Owner(arrays(), error=KeyError("second"))]
    _, pending = save([owner.leaf for owner in owners], store)
    with pytest.raises(KeyError, match="first"):
        pending.done(False)
    assert [owner.heard for owner in owners] == [[None], [None]] and names(store) == []


def test_arrays_that_were_loaded_are_handed_on_once(store):
    ref = store.write({}, arrays())
    saved = SavedSegments([ref], store, True, {ref.name: {"r": np.zeros(1)}})
    assert list(saved.read(ref)) == ["r"]
    assert equal(saved.read(ref), arrays())


def test_states_that_cannot_be_saved_or_loaded(store):
    loop = []
    loop.append(loop)
    for use in (PendingSegments, lambda tree: load_segments(tree, list)):
        with pytest.raises(TypeError, match="deeper than 64 levels"):
            use(loop)
    with pytest.raises(ValueError, match="the key '@segments'"):
        PendingSegments([{"@segments": 1, "x": 2}])
