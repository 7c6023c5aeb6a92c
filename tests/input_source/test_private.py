import numpy as np

from tensorpack.input_source.enqueue_thread import private
from tensorpack.utils.packing.packed_arrays import is_immutable


def test_a_copy_is_aligned_so_that_tensorflow_takes_it_over():
    array = np.arange(10000.0).reshape(100, 100).T
    copy = private(array)
    assert copy.dtype == array.dtype and copy.tolist() == array.tolist()
    assert copy.ctypes.data % 64 == 0


def test_what_is_read_only_is_not_copied():
    array = np.zeros(5000)
    assert private(array) is not array
    array.setflags(write=False)
    for each in array, array[10:], np.frombuffer(b"x" * 5000, np.uint8):
        assert is_immutable(each)
        assert private(each) is each


def test_a_read_only_view_of_what_can_be_written_is_copied():
    memory = np.zeros(5000)
    view = memory[:]
    view.setflags(write=False)
    borrowed = np.frombuffer(bytearray(5000), np.uint8)
    borrowed.setflags(write=False)
    for each in view, borrowed:
        assert not is_immutable(each)
        assert not np.shares_memory(private(each), each)
