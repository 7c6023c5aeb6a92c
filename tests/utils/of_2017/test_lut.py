"""A look-up table finds both ways."""

from tensorpack.utils.of_2017.lut import LookUpTable


def test_both_ways():
    table = LookUpTable("xyz")
    assert table.size() == 3
    assert [table.get_obj(index) for index in range(3)] == ["x", "y", "z"]
    assert [table.get_idx(each) for each in "zx"] == [2, 0]
    assert str(table) == "['x', 'y', 'z']"
