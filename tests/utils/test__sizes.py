"""Numbers of bytes in words."""

from tensorpack.utils._sizes import size_text


def test_sizes():
    texts = ["", "0 B", "999 B", "1.0 kB", "2.5 MB", "3.0 GB", "4.0 TB"]
    assert [size_text(each, "") for each in (None, 0, 999, 1000, 2.5e6, 3e9, 4e12)] == texts
    assert size_text(None) == "?"
