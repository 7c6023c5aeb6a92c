"""Objects come out of their packed form as they were, and large arrays are not in the pickle."""

import collections
import copyreg
import threading

import numpy as np
import pytest

from tensorpack.dataflow._processes.pickled import pack, unpack, write
from tensorpack.dataflow._stack import Rows
from tensorpack.utils.packing.packed_arrays import aligned

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


def through(obj, copies=False):
    packed = pack(obj)
    memory = np.zeros(packed.nbytes, np.uint8)
    write(packed, memory)
    memory.setflags(write=False)
    return unpack(memory[packed.begin :], memory, copies), memory


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("copies", [False, True])
def test_arrays(name, copies):
    array = ARRAYS[name]
    (found,), memory = through([array], copies=copies)
    assert found.dtype == array.dtype and found.shape == array.shape
    np.testing.assert_array_equal(found, array)
    is_view = array.nbytes > 512 and not copies
    assert np.shares_memory(found, memory) == is_view
    assert found.flags.writeable == array.dtype.hasobject


def test_what_is_large_is_not_in_the_pickle():
    packed = pack({"image": np.zeros([100, 100], np.uint8), "box": Box(LARGE, "x")})
    assert len(packed.pickle) < 400
    assert packed.begin == aligned(10000) + 8000


def test_objects_of_any_class():
    box, kinds = Box(LARGE, "x"), {1, 2}
    shared = [box, box, kinds, Masked(LARGE.shape), 1 << 100, ["a", {"b": (None, 2.5)}]]
    found, memory = through(shared)
    assert isinstance(found[0], Box) and found[0] is found[1]
    assert np.shares_memory(found[0].corners, memory)
    assert found[2] == kinds and type(found[3]) is Masked and found[4:] == shared[4:]


def test_rows_come_as_one_array():
    rows = Rows([np.arange(300), np.arange(300.0)], np.dtype("f4"))
    (found,), _ = through([rows])
    np.testing.assert_array_equal(found, np.stack([np.arange(300)] * 2).astype("f4"))
    assert found.dtype == np.float32


def test_a_class_of_the_same_name_is_another():
    assert through([_large_array])[0] == [_large_array]


def _large_array():
    """As a function of the module."""


def test_what_cannot_be_pickled_is_named_with_its_place():
    with pytest.raises(TypeError, match=r"^\[1\]\['it'\]: a lock cannot be pickled"):
        pack([1, {"it": threading.Lock()}])
    with pytest.raises(TypeError, match="^a generator cannot be pickled"):
        pack(x for x in "a")


def test_what_a_program_registers_for_its_classes_is_used(monkeypatch):
    monkeypatch.setitem(copyreg.dispatch_table, Box, lambda box: (str, ("box",)))
    assert through([Box(1, 2)])[0] == ["box"]
