"""What is remembered about datapoints changes nothing of what comes out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorpack.dataflow._processes import layouts
from tensorpack.dataflow._processes.layouts import Packing, Unpacking
from tensorpack.utils.packed import MAX_INLINE_BYTES, pack, unpack, write
from tests.contracts.dataflow import assert_same

IMAGE = np.arange(5000, dtype=np.uint16).reshape(50, 100)
LABELS = [
    0,
    1,
    -1,
    True,
    False,
    None,
    2**63,
    "",
    "1",
    b"1",
    0.0,
    -0.0,
    1.0,
    np.int64(1),
    "x" * 2000,
]


def check(packing, unpacking, obj, start=64):
    """Both ends do what `pack` and `unpack` do."""
    packed, expected = packing(obj), pack(obj)
    assert packed.structure == expected.structure and packed.nbytes == expected.nbytes
    assert all(a is b for a, b in zip(packed.arrays, expected.arrays))
    assert len(packed.arrays) == len(expected.arrays)
    memory = np.zeros(start + packed.nbytes + 64, np.uint8)
    write(packed, memory, start)
    memory.flags.writeable = False
    args = memory, len(packed.structure), start, start + packed.nbytes
    for keep in None, np.copy:
        assert_same(unpacking(*args, keep), unpack(*args, keep))
    found = unpacking(*args, None)
    assert_same(found, obj)
    return found


@pytest.mark.parametrize("make", [list, tuple, lambda parts: dict(zip("abc", parts))])
def test_labels_and_arrays_of_all_kinds(make):
    packing, unpacking = Packing(), Unpacking()
    for _ in range(3):
        for number, label in enumerate(LABELS):
            for array in IMAGE, IMAGE.astype(">f4"), IMAGE[::2], IMAGE[:2, :2], IMAGE.T:
                check(packing, unpacking, make([array, label, array[::-1]]), 64 * number)


def test_arrays_are_views_and_containers_are_new():
    packing, unpacking = Packing(), Unpacking()
    for _ in range(3):
        found = check(packing, unpacking, [IMAGE, 1])
        assert not found[0].flags.writeable and isinstance(found[0].base, np.ndarray)
        found[1] = "spoiled"


def test_the_values_are_those_of_now():
    packing, unpacking = Packing(), Unpacking()
    for value in range(4):
        check(packing, unpacking, [np.full(5000, value), np.full(9000, -value)])


def test_names_and_order_matter():
    packing, unpacking = Packing(), Unpacking()
    for _ in range(2):
        for obj in {"a": IMAGE, "b": 1}, {"b": IMAGE, "a": 1}, {"b": 1, "a": IMAGE}, {1: IMAGE}:
            check(packing, unpacking, obj)


def test_small_and_inner_arrays_go_the_long_way():
    packing, unpacking = Packing(), Unpacking()
    for value in range(3):
        small = np.full(5, value)
        for obj in [small], [small, [IMAGE]], [[IMAGE], value], [IMAGE, small], IMAGE, [], {}:
            check(packing, unpacking, obj)


def test_the_size_from_which_arrays_are_no_part_of_the_structure():
    packing, unpacking = Packing(), Unpacking()
    for value in range(3):
        for nbytes in range(MAX_INLINE_BYTES - 2, MAX_INLINE_BYTES + 3):
            check(packing, unpacking, [np.full(nbytes, value, np.uint8), nbytes])
    assert len(packing._memory.known) == 2


def test_what_cannot_be_sent_is_named_each_time():
    packing = Packing()
    for obj in [IMAGE, object()], [np.zeros(999, object)], [IMAGE.view("V2")]:
        for _ in range(2):
            with pytest.raises(TypeError, match="cannot be sent"):
                packing(obj)


def test_it_gives_up_where_nothing_comes_again(monkeypatch):
    monkeypatch.setattr(layouts, "_MOST", 10)
    packing, unpacking = Packing(), Unpacking()
    for number in range(50):
        check(packing, unpacking, [IMAGE, number])
        assert len(packing._memory.known) <= 10 and len(unpacking._memory.known) <= 10
    assert not packing._memory.is_of_use
    packing, unpacking = Packing(), Unpacking()
    for number in range(50):
        check(packing, unpacking, [IMAGE, number % 5])
    assert packing._memory.is_of_use and len(packing._memory.known) == 5


PARTS = st.one_of(
    st.sampled_from(LABELS),
    st.integers(-3, 3),
    st.floats(allow_nan=False),
    st.sampled_from([IMAGE, IMAGE[:0], IMAGE[:1], IMAGE > 7, [IMAGE], (1, IMAGE)]),
)
OBJECTS = st.one_of(
    st.lists(PARTS, max_size=4),
    st.lists(PARTS, max_size=3).map(tuple),
    st.dictionaries(st.sampled_from(["a", "b", 1, 2.5]), PARTS, max_size=3),
)


@given(objects=st.lists(OBJECTS, max_size=8))
def test_anything(objects):
    packing, unpacking = Packing(), Unpacking()
    for obj in objects * 2:
        check(packing, unpacking, obj)
