"""Tests of `tensorpack.utils.packing.packed_arrays`."""

import numpy as np
import pytest

from tensorpack.utils.packing.packed_arrays import aligned_empty


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(), (3,), (0, 5), (7, 80, 90)])
def test_it_is_aligned_writable_and_all_there(shape, dtype):
    for _ in range(5):
        array = aligned_empty(shape, dtype)
        assert array.flags.c_contiguous and not (array.size and array.ctypes.data % 64)
        assert array.shape == shape and array.dtype == np.dtype(dtype)
        array[...] = 7
        assert (array == 7).all()
