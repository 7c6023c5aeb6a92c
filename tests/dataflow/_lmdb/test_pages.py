"""All keys of a file are found without LMDB, or an error says where it is damaged."""

import struct

import lmdb
import pytest

from tensorpack.dataflow._lmdb import pages
from tensorpack.dataflow._lmdb.pages import PageError, read_keys
from tensorpack.dataflow._lmdb.probe import probe
from tests.dataflow.lmdb_files import COUNT, PAGE, damage, keys_of, read_raw, root_of, write_raw

pytestmark = pytest.mark.fault_row(32)


@pytest.mark.parametrize(
    "items",
    [
        [],
        [(b"a", b"")],
        [(b"%d" % number, b"x" * (number % 3000)) for number in range(3000)],
        [(b"%d" % number * 100, b"x" * 9000) for number in range(300)],
        [(b"k" * 511, b"x" * 2**20), (b"l" * 511, b"y" * 4079), (b"m", b"z" * 4080)],
    ],
    ids=["empty", "one", "small", "large", "extreme"],
)
def test_all_keys_are_found_without_lmdb(tmp_path, items):
    path = write_raw(tmp_path / "file", items)
    assert keys_of(path) == sorted(key for key, _ in items) == sorted(read_raw(path))
    probe(path)


def test_keys_are_found_after_others_were_taken_away(tmp_path):
    path = write_raw(tmp_path / "file", [(b"%05d" % i, b"x" * (i % 5000)) for i in range(2000)])
    with lmdb.open(path, map_size=2**26, subdir=False) as env:
        for begin in range(3):
            with env.begin(write=True) as transaction:
                for number in range(begin, 2000, 4):
                    transaction.delete(b"%05d" % number)
                transaction.put(b"new%d" % begin, b"y" * 10000)
    assert keys_of(path) == sorted(read_raw(path))
    probe(path)


def test_a_branch_that_names_itself(tmp_path):
    path = write_raw(tmp_path / "file", [(b"%d" % i, b"x" * 100) for i in range(1000)])
    branch = root_of(path)
    with open(path, "rb") as file:
        (first,) = struct.unpack_from("=H", file.read(), branch + 16)
    damaged = damage(path, branch + first, struct.pack("=I", branch // PAGE))
    with pytest.raises(PageError, match="cannot be a part"):
        keys_of(damaged)


def test_a_wrong_number_of_records(whole):
    """In both headers, for one of them counts."""
    damaged = whole
    for page in 0, PAGE:
        damaged = damage(damaged, page + 120, struct.pack("=Q", 5))
    with pytest.raises(PageError, match=f"There are {COUNT + 2} records, but the header says 5"):
        keys_of(damaged)


def test_the_pages_of_values_are_not_read(tmp_path):
    """So a file of large values is checked fast."""
    path = write_raw(tmp_path / "file", [(b"%03d" % i, bytes(100000)) for i in range(100)])

    class Counting:
        read_bytes = 0

        def __init__(self, file):
            self._file = file
            self.seek, self.fileno = file.seek, file.fileno

        def read(self, count):
            Counting.read_bytes += count
            return self._file.read(count)

    with open(path, "rb") as file:
        assert len(list(read_keys(Counting(file)))) == 100
    assert Counting.read_bytes < 10 * PAGE


def test_the_program_that_checks_needs_nothing_of_this_package():
    with open(pages.__file__) as file:
        source = file.read()
    assert "import tensorpack" not in source
    assert "from ." not in source and "from tensorpack" not in source
    assert "numpy" not in source
