"""Objects come out of their packed form as they were, and large arrays are not in the pickle."""

import collections
import copyreg

import numpy as np
import pytest

from tensorpack.dataflow._processes.pickled import Packed, unpack

Box = collections.namedtuple("Box", "corners name")


class Masked(np.ndarray):
    """A subclass, which pickle knows by itself."""


LARGE = np.arange(1000.0)
ARRAYS = {
    "large": LARGE,
    "small": np.arange(5, dtype=np.int16),
    "without elements": np.zeros([0, 3], np.uint8),
    "without dimensions": np.float32(3).reshape(()),
    "in the order of Fortran": np.asfortranarray(LARGE.reshape(10, 100)),
    "every other": LARGE[::2],
    "of other bytes": LARGE.astype(">f8"),
    "dates": np.arange(1000).astype("M8[ms]"),
    "text": np.array(["ä", "b"] * 200),
    "records": np.zeros(100, [("a", "f4"), ("b", "i4", (3,))]),
    "booleans": LARGE > 7,
    "objects": np.array([1, "a", None], object),
}


def through(obj):
    packed = Packed(obj)
    memory = np.zeros(packed.nbytes, np.uint8)
    packed.write(memory)
    memory.setflags(write=False)
    return unpack(memory[packed.begin :], memory), memory


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name):
    array = ARRAYS[name]
    (result,), memory = through([array])
    assert result.dtype == array.dtype and result.shape == array.shape
    np.testing.assert_array_equal(result, array)
    assert np.shares_memory(result, memory) == (array.nbytes > 512)
    assert result.flags.writeable == array.dtype.hasobject


@pytest.mark.parametrize("size", [4, 1000])
def test_an_array_of_another_library(size):
    array = np.ones(size, pytest.importorskip("ml_dtypes").float8_e5m2)  # a kind of float
    (result,), _ = through([array])
    assert result.dtype == array.dtype and (result == array).all()


def test_objects_of_any_class():
    box, kinds = Box(LARGE, "x"), {1, 2}
    objects = [box, box, kinds, Masked(LARGE.shape), 1 << 100, ["a", {"b": (None, 2.5)}]]
    results, memory = through(objects)
    assert isinstance(results[0], Box) and results[0] is results[1]
    assert np.shares_memory(results[0].corners, memory)
    assert results[2] == kinds and type(results[3]) is Masked and results[4:] == objects[4:]


def test_what_a_program_registers_for_its_classes_is_used(monkeypatch):
    monkeypatch.setitem(copyreg.dispatch_table, Box, lambda box: (str, ("box",)))
    assert through([Box(1, 2)])[0] == ["box"]


@pytest.mark.parametrize("code", "?bBilfdFM")
def test_scalars_keep_their_type(code):
    scalar = np.ones(1, "M8[s]" if code == "M" else code)[0]
    (result,), _ = through([scalar])
    assert type(result) is type(scalar) and result == scalar
