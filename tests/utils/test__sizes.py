"""Numbers of bytes in words."""

from tensorpack.utils._sizes import size_text


def test_sizes():
    texts = ["", "0 B", "999 B", "1.0 kB", "2.5 MB", "3.0 GB", "4.0 TB"]
    assert [size_text(each, "") for each in (None, 0, 999, 1000, 2.5e6, 3e9, 4e12)] == texts
    assert size_text(None) == "?"


def test_what_is_rounded_up_to_a_thousand_has_the_next_unit():
    sizes = (999_949, 999_960, 999_949_000, 999_960_000, 999_999_999_999, 999.7)
    texts = ["999.9 kB", "1.0 MB", "999.9 MB", "1.0 GB", "1.0 TB", "1.0 kB"]
    assert [size_text(each) for each in sizes] == texts
