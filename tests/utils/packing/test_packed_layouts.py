"""Objects that are packed by their form come out as they went in."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorpack.utils.packing import packed_layouts
from tensorpack.utils.packing.packed import MAX_INLINE_BYTES, write
from tensorpack.utils.packing.packed_layouts import LayoutReader, LayoutWriter
from tests.contracts.dataflow import assert_same

IMAGE = np.arange(5000, dtype=np.uint16).reshape(50, 100)
LABELS = [0, -1, 2**63 - 1, -(2**63), 2**64 - 1, True, False, None, "", "1", "ä", "x" * 2000]
LABELS += [b"1", b"", b"\0", 0.0, -0.0, float("inf"), np.int64(1), np.float32(0.1), np.bool_(True)]
LABELS += [np.arange(3), np.zeros((0, 4)), np.full(2, 1.5, ">f4"), np.str_("a"), np.array("text")]


class Ends:
    """Both ends of a channel."""

    def __init__(self):
        self.writer = LayoutWriter()
        self.readers = LayoutReader(), LayoutReader()  # of views, and of copies

    def check(self, obj, start=64):
        """Sends an object, checks what comes out, and returns the number of its layout."""
        packed, number = self.writer.pack(obj)
        memory = np.zeros(start + packed.nbytes + 64, np.uint8)
        write(packed, memory, start)
        memory.flags.writeable = False
        if self.writer.unsent:
            self.writer.was_sent()
        args = memory, len(packed.structure), start, start + packed.nbytes
        found, copied = (
            reader.unpack(*args, keep, number)
            for reader, keep in zip(self.readers, (None, np.copy))
        )
        assert_same(found, obj)
        assert_same(copied, obj)
        for part in found.values() if isinstance(found, dict) else list(found):
            if isinstance(part, np.ndarray) and part.nbytes > MAX_INLINE_BYTES:
                assert part.ctypes.data % 64 == memory.ctypes.data % 64
                assert not part.flags.writeable
        return number


@pytest.mark.parametrize("make", [list, tuple, lambda parts: dict(zip("abc", parts))])
def test_labels_and_arrays_of_all_kinds(make):
    ends = Ends()
    for _ in range(3):
        for number, label in enumerate(LABELS):
            for array in IMAGE, IMAGE.astype(">f4"), IMAGE[::2], IMAGE[:2, :2], IMAGE.T:
                ends.check(make([array, label, array[::-1]]), 64 * number)


@pytest.mark.parametrize(
    "make",
    [
        lambda i: [IMAGE, i],
        lambda i: [IMAGE, i * 0.1],
        lambda i: {"image": IMAGE + i, "name": f"{i:08d}", "box": np.arange(4.0) * i},
        lambda i: (np.float32(i), b"%04d" % i, None, True),
    ],
)
def test_a_form_has_one_layout_whatever_the_values(make):
    ends = Ends()
    assert [ends.check(make(i)) for i in range(50)] == [0] + 49 * [1]


def test_an_object_that_was_not_sent_teaches_nothing():
    ends = Ends()
    ends.writer.pack([1, IMAGE])
    assert ends.writer.pack([2, IMAGE])[1] == 1  # but it cannot be sent
    assert [ends.check([i, IMAGE]) for i in range(3)] == [1, 1, 1]


def test_an_integer_that_is_too_large_goes_the_long_way():
    ends = Ends()
    assert [ends.check([number]) for number in (1, 2, 2**63, 3)] == [0, 1, 0, 1]


def test_names_order_and_types_matter():
    ends = Ends()
    for _ in range(3):
        for obj in {"a": 1, "b": 2.0}, {"b": 1, "a": 2.0}, {"a": 1.0, "b": 2}, {1: 2}, [1, 2.0]:
            ends.check(obj)
    assert len(ends.writer._layouts) == 4


def test_what_is_inside_of_another_container_goes_the_long_way():
    ends = Ends()
    for i in range(3):
        for obj in [i, [IMAGE]], [[IMAGE], i], [(1, i)], IMAGE, [np.array([f"{i}"])], [], {}:
            packed, number = ends.writer.pack(obj)
            assert number == 0 or len(obj) == 0


def test_what_cannot_be_sent_is_named_each_time():
    writer = LayoutWriter()
    for obj in [IMAGE, threading.Lock()], [np.array([threading.Lock()])]:
        for _ in range(3):
            with pytest.raises(TypeError, match="cannot be pickled"):
                writer.pack(obj)


def test_it_stops_looking_where_no_form_comes_again(monkeypatch):
    monkeypatch.setattr(packed_layouts, "_MOST_FORMS", 10)
    ends = Ends()
    for number in range(50):
        assert ends.check([np.zeros(1000 + number)]) == 0
    assert not ends.writer._is_useful and len(ends.writer._forms) <= 10
    ends = Ends()
    for number in range(50):
        ends.check([np.zeros(1000 + number % 5)])
    assert ends.writer._is_useful and len(ends.writer._layouts) == 5


def test_there_are_no_more_layouts_than_fit_into_a_byte(monkeypatch):
    ends = Ends()
    for _ in range(3):
        for number in range(300):
            assert ends.check([b"x" * 10, *[0] * number]) < 256


PARTS = st.one_of(
    st.sampled_from(LABELS),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.sampled_from([IMAGE, IMAGE[:0], IMAGE[:1], IMAGE > 7, [IMAGE], (1, IMAGE)]),
)
OBJECTS = st.one_of(
    st.lists(PARTS, max_size=4),
    st.lists(PARTS, max_size=3).map(tuple),
    st.dictionaries(st.sampled_from(["a", "b", 1, 2.5]), PARTS, max_size=3),
)


@given(objects=st.lists(OBJECTS, max_size=8))
def test_anything(objects):
    ends = Ends()
    for obj in objects * 3:
        ends.check(obj)
