"""Descriptors are closed once and by whoever has them; memory needs no name."""

import errno
import gc
import mmap
import os

import numpy as np
import pytest

from tensorpack.dataflow._processes import shared_memory
from tensorpack.dataflow._processes.shared_memory import Descriptor, SharedFile
from tests.processes import named_memory, open_files

SIZE = 5000


@pytest.fixture
def file():
    shared = SharedFile()
    yield shared
    shared.close()


def test_what_is_being_closed_is_left_alone_by_a_fork(monkeypatch):
    """Its number may be of another descriptor by then, which the fork needs."""
    reader, writer = os.pipe()
    end, close, closed = Descriptor(writer), os.close, []

    def close_slowly(fd):
        closed.append(fd)
        close(fd)
        end.close()  # as a worker does that another thread forks now

    with monkeypatch.context() as patch:
        patch.setattr(os, "close", close_slowly)
        end.close()
    assert closed == [writer] and os.read(reader, 1) == b""
    os.close(reader)


def test_a_descriptor_is_closed_once():
    gc.collect()  # of tests before
    before = open_files()
    file = SharedFile()
    copy = SharedFile(os.dup(file.fd))
    number = file.fd
    file.close()
    other = os.open(os.devnull, os.O_RDONLY)
    assert other == number  # the number is somebody else's now
    file.close()
    os.fstat(other)
    os.fstat(copy.fd)
    os.close(other)
    copy.close()
    assert open_files() == before


@pytest.mark.parametrize("memfd", [True, False])
def test_the_memory_has_no_name(memfd, monkeypatch):
    if not memfd:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    gc.collect()  # of tests before
    before = named_memory(), open_files()
    file = SharedFile()
    file.resize(SIZE)
    array = file.view(SIZE, writable=True)
    array[:] = 7
    assert named_memory() == before[0]
    file.close()
    assert set(array) == {7}
    del array
    assert open_files() == before[1]


def test_views_see_what_is_written_and_the_system_forbids_to_write_to_readers(file):
    file.resize(SIZE)
    copy = SharedFile(os.dup(file.fd))
    reader, writer = copy.view(SIZE, writable=False), file.view(SIZE, writable=True)
    writer[:] = np.arange(SIZE) % 256
    copy.close()
    np.testing.assert_array_equal(reader, np.arange(SIZE) % 256)
    assert reader.dtype == np.uint8 and reader.shape == (SIZE,)
    with pytest.raises(ValueError):
        reader[0] = 1
    with pytest.raises(ValueError):
        reader.setflags(write=True)
    assert isinstance(reader.base, memoryview) and reader.base.readonly


def test_it_can_grow_while_it_is_viewed(file):
    file.resize(SIZE)
    small = file.view(SIZE, writable=True)
    small[:] = 3
    file.resize(3 * SIZE)
    large = file.view(3 * SIZE, writable=True)
    large[:] = 4
    assert set(small) == {4}
    assert len(large) == 3 * SIZE


def test_memory_is_taken_at_once_and_given_back(file):
    fd = file.fd
    file.resize(1 << 20)
    assert os.fstat(fd).st_blocks * 512 == 1 << 20
    file.resize(0)
    assert os.fstat(fd).st_blocks == 0


def test_a_system_that_cannot_allocate_at_once(file, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate")  # as on macOS
    file.resize(SIZE)
    file.view(SIZE, writable=True)[:] = 7
    assert set(file.view(SIZE, writable=False)) == {7}


def test_without_memory_it_is_empty_and_says_what_to_do(file, monkeypatch):
    def refuse(fd, offset, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    file.resize(SIZE)
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", refuse)
        with pytest.raises(OSError, match=r"No room for 2\.0 MiB.*ENOSPC.*shm-size") as caught:
            file.resize(1 << 21)
    assert caught.value.errno == errno.ENOSPC
    assert os.fstat(file.fd).st_size == 0
    file.resize(SIZE)
    assert len(file.view(SIZE, writable=True)) == SIZE


def test_a_folder_for_the_memory_is_not_needed(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    monkeypatch.setattr(shared_memory, "_SHM", str(tmp_path / "none"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    file = SharedFile()
    file.resize(SIZE)
    assert list(tmp_path.iterdir()) == []
    file.close()


def test_no_descriptor_is_left_for_a_mapping(file, monkeypatch):
    def refuse(*args, **options):
        raise OSError(errno.EMFILE, "Too many open files")

    file.resize(100)
    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(
        OSError, match=r"No room for shared memory .EMFILE.* \(ulimit -n\)"
    ) as error:
        file.view(100, writable=False)
    assert error.value.errno == errno.EMFILE
