"""Tests of `tensorpack.utils.checkpoints.segments`."""

import errno
import io
import os
import stat

import numpy as np
import pytest

from tensorpack.utils import logger
from tensorpack.utils.checkpoints.segments import (
    SegmentDamaged,
    Segments,
    SegmentStore,
    load_segments,
)
from tensorpack.utils.serialize import dump_hashed, load_hashed


@pytest.fixture
def store(tmp_path):
    return SegmentStore(tmp_path / "segments")


def names(store):
    return sorted(os.listdir(store.directory)) if os.path.isdir(store.directory) else []


def arrays(count=3):
    return {"state": np.arange(count * 4, dtype=np.uint8).reshape(count, 4), "r": np.ones(count)}


class Owner:
    """Has segments and writes down what it hears of them."""

    def __init__(self, *new, saved=(), error=None):
        self.heard = []
        self._error = error
        self.leaf = Segments(saved, [({"i": i}, part) for i, part in enumerate(new)], self._done)

    def _done(self, refs):
        self.heard.append(refs)
        if self._error is not None:
            raise self._error


def equal(left, right):
    return list(left) == list(right) and all(
        left[key].dtype == right[key].dtype and np.array_equal(left[key], right[key])
        for key in left
    )


def pack(tree, store):
    """A state as it is written to a file and read again."""
    file = io.BytesIO()
    dump_hashed(tree, file, {Segments: store.pack})
    return load_hashed(np.frombuffer(bytearray(file.getvalue()), np.uint8))


def test_a_segment_comes_back(store):
    ref = store.write({"lane": 1, "text": ["a", None, 0.5]}, arrays())
    assert (ref.name, ref.meta["text"]) == ("segment-00000001.seg", ["a", None, 0.5])
    assert equal(store.read(ref), arrays()) and store.read(ref)["r"].flags.writeable
    whole = np.random.RandomState(0).randint(0, 256, (70, 1000, 60), np.uint8)  # several pieces
    views = {"a": whole[3:50, ::2], "b": whole.T, "c": whole[::-1], "d": whole[:0], "e": whole[5]}
    assert equal(store.read(store.write({}, views)), views)


def test_no_name_is_given_twice(store):
    refs = [store.write({}, arrays()) for _ in range(3)]
    store.delete_others({refs[0].name})
    assert store.write({}, arrays()).name == "segment-00000004.seg"
    later = SegmentStore(store.directory)
    assert later.write({}, arrays()).name == "segment-00000005.seg"
    for name in ("segment-99999999.seg", "segment-x.seg", "other"):
        open(os.path.join(store.directory, name), "wb").close()
    assert later.write({}, arrays()).name == "segment-100000000.seg"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_the_bytes_are_on_the_disk_before_the_name_is(store, monkeypatch):
    fsync, replace, tape = os.fsync, os.replace, []

    def note_fsync(descriptor):
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        tape.append((path, "folder" if is_folder else os.fstat(descriptor).st_size))
        fsync(descriptor)

    def note_replace(source, target):
        tape.append((source, target))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(os, "replace", note_replace)
    ref = store.write({}, arrays())
    temporary, path = tape[1][0], os.path.join(store.directory, ref.name)
    parent = (os.path.dirname(store.directory), "folder"), (temporary, ref.size)
    assert tape == [*parent, (temporary, path), (store.directory, "folder")]


def test_damage_is_found(store):
    ref, other = (store.write({}, {"a": np.full(3, value)}) for value in (0, 1))
    path = os.path.join(store.directory, ref.name)
    with open(path, "rb") as file:
        data = file.read()
    with pytest.raises(SegmentDamaged, match="SHA-256"):
        store.read(ref._replace(name=other.name))
    for content in (b"", data[:-1], data + b"\0", data[:-1] + b"\1"):
        with open(path, "wb") as file:
            file.write(content)
        with pytest.raises(SegmentDamaged, match=f"The segment {path} cannot be used"):
            store.read(ref)
    os.remove(path)
    with pytest.raises(SegmentDamaged, match="it is missing"):
        store.read(ref)


def test_only_segments_are_deleted_and_what_cannot_be_is_warned_of(store, monkeypatch):
    refs = [store.write({}, arrays()) for _ in range(3)]
    foreign = ["x.seg", "segment-00000009.seg.tmp", ".other.1-a.tmp", "segment-9.seg", "notes"]
    for name in [*foreign, ".segment-00000009.seg.123-deadbeef.tmp"]:
        open(os.path.join(store.directory, name), "wb").close()
    store.delete_others({refs[1].name, "segment-00000077.seg"})
    assert names(store) == sorted([*foreign, refs[1].name])
    warnings = []

    def remove(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(logger, "warning", warnings.append)
    monkeypatch.setattr(os, "remove", remove)
    store.delete_others(set())
    assert len(warnings) == 1 and refs[1].name in warnings[0] and "denied" in warnings[0]


def test_a_state_with_segments_comes_back(store):
    old = store.write({"i": 9}, arrays(1))
    owners = [Owner(arrays(2), arrays(3), saved=[old]), Owner(), Owner(arrays(4))]
    first, empty, last = (owner.leaf for owner in owners)
    tree = {"a": {"entries": first}, "b": [(empty, None), last], "again": first}
    loaded = load_segments(pack(tree, store), list)
    assert [owner.heard for owner in owners] == [[], [], []]
    needed = store.end_save(tree, True)
    states = [loaded["a"]["entries"], loaded["b"][0][0], loaded["b"][1]]
    assert [owner.heard for owner in owners] == [[refs] for refs in states]
    assert states[0][0] == old and [ref.meta["i"] for ref in states[0]] == [9, 0, 1]
    assert needed == {ref.name for refs in states for ref in refs} == set(names(store))
    counts = [[len(store.read(ref)["r"]) for ref in refs] for refs in states]
    assert counts == [[1, 2, 3], [], [4]]
    assert loaded["b"][0][1] is None and loaded["again"] == states[0]


@pytest.mark.parametrize("bad", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()], ids=repr)
def test_if_one_write_fails_the_others_are_deleted_and_all_owners_told(store, bad, monkeypatch):
    old = store.write({}, arrays())
    owners = [Owner(arrays(), saved=[old]), Owner(arrays(), arrays(), error=LookupError("mine"))]
    owners.append(Owner(error=LookupError("mine")))
    write, count = store.write, []

    def fail_at_third(meta, parts):
        count.append(1)
        if len(count) == 3:
            raise bad
        return write(meta, parts)

    monkeypatch.setattr(store, "write", fail_at_third)
    tree = [owner.leaf for owner in owners] * 2
    tree.append(tree)  # as a mistake would have it
    with pytest.raises(type(bad)):
        pack(tree, store)
    with pytest.raises(LookupError, match="mine"):
        store.end_save(tree, False)
    assert names(store) == [old.name]
    assert [owner.heard for owner in owners] == [[None]] * 3
