"""A look-up table finds both ways."""

import pytest

from tensorpack.utils.of_2017.lut import LookUpTable


def test_both_ways():
    table = LookUpTable("xyz")
    assert table.size() == 3
    assert [table.get_obj(index) for index in range(3)] == ["x", "y", "z"]
    assert [table.get_idx(each) for each in "zx"] == [2, 0]
    with pytest.raises(KeyError):
        table.get_idx("w")
    assert str(table) == "['x', 'y', 'z']"


def test_an_object_twice_has_no_index():
    with pytest.raises(ValueError, match="'a' is in the list twice, at 0 and 2"):
        LookUpTable(["a", "b", "a"])
