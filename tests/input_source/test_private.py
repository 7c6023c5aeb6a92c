import numpy as np
import pytest

from tensorpack.input_source.enqueue_thread import private
from tensorpack.utils.packing.packed_arrays import stays_as_it_is


@pytest.mark.parametrize("dtype", ["uint8", "bool", "float64"])
@pytest.mark.parametrize("shape", [(), (3,), (0, 5), (20, 30, 40)])
def test_dtype_shape_and_values_are_kept(dtype, shape):
    array = np.arange(int(np.prod(shape)), dtype="int64").reshape(shape).astype(dtype)
    for view in array, array.T, array[..., ::2] if shape else array:
        copy = private(view)
        assert (copy.dtype, copy.shape) == (view.dtype, view.shape)
        assert copy.tolist() == view.tolist()


def test_what_tensorflow_takes_over_is_aligned():
    assert private(np.zeros(10000, np.uint8)).ctypes.data % 64 == 0


def test_what_is_read_only_is_not_copied():
    array = np.zeros(5000)
    assert private(array) is not array
    array.setflags(write=False)
    for each in array, array[10:], np.frombuffer(b"x" * 5000, np.uint8):
        assert stays_as_it_is(each)
        assert private(each) is each


def test_a_read_only_view_of_what_can_be_written_is_copied():
    memory = np.zeros(5000)
    view = memory[:]
    view.setflags(write=False)
    borrowed = np.frombuffer(bytearray(5000), np.uint8)
    borrowed.setflags(write=False)
    for each in view, borrowed:
        assert not stays_as_it_is(each)
        assert not np.shares_memory(private(each), each)
