"""HDF5 never sees an error of the file that it writes; the caller does."""

import functools
import itertools
from _thread import interrupt_main

import pytest

from tensorpack.dataflow.files.hdf5_writing import _Unfailing, new_hdf5

h5py = pytest.importorskip("h5py")


class Disk:
    """Takes some bytes and no more, two at a time."""

    seek = tell = read = readinto = flush = None

    def __init__(self, space):
        self.space, self.data = space, b""

    def write(self, data):
        if len(self.data) == self.space:
            raise OSError(28, "No space left on device")
        self.data += bytes(data[: min(2, self.space - len(self.data))])
        return min(2, len(data))

    def truncate(self, size):
        raise OSError(5, "Input/output error")


def test_the_first_error_is_kept_and_what_comes_later_is_dropped():
    disk = Disk(4)
    file = _Unfailing(disk, "a.h5")
    file.write(b"abcd")
    file.check()
    file.write(b"ef")
    disk.space = 100
    file.write(b"gh")
    file.truncate(0)
    assert disk.data == b"abcd"
    for _ in range(2):
        with pytest.raises(OSError, match="No space left on device: 'a.h5'"):
            file.check()
    file = _Unfailing(Disk(0), "a.h5")
    file.truncate(3)
    with pytest.raises(OSError, match="Input/output error"):
        file.check()


@pytest.mark.parametrize("name, argument", [("write", b"x"), ("truncate", 1)])
def test_ctrl_c_at_the_begin_of_a_call_does_not_reach_hdf5(name, argument):
    file = _Unfailing(Disk(10), "a.h5")
    calls = [functools.partial(interrupt_main), functools.partial(getattr(file, name), argument)]
    # No code of Python runs between these two: it would be interrupted there.
    assert list(itertools.starmap(functools.partial.__call__, zip(calls))) == [None, None]
    with pytest.raises(KeyboardInterrupt):
        file.check()


def test_what_a_block_raises_comes_out_and_the_file_is_closed(tmp_path):
    path = str(tmp_path / "a.h5")
    with pytest.raises(ZeroDivisionError), new_hdf5(path) as (target, _):
        target["x"] = [1, 2]
        raise ZeroDivisionError
    with h5py.File(path, "r") as file:
        assert file["x"][:].tolist() == [1, 2]


def test_an_error_of_hdf5_after_one_of_the_file_gives_way_to_it(tmp_path):
    with pytest.raises(OSError, match="lost"), new_hdf5(str(tmp_path / "a.h5")) as (target, check):
        target["x"] = [1]
        check.__self__._error = OSError("lost")
        raise RuntimeError("cannot read what was not written")
