"""Damaged LMDB files give the right data or an error that names them."""

import os
import pickle

import lmdb
import numpy as np
import pytest

from tensorpack.dataflow.files.lmdb_file import DamagedLMDB, LMDBData, LMDBSerializer
from tests.dataflow.flows import flow_of
from tests.dataflow.lmdb_files import (
    COUNT,
    PAGE,
    damage,
    read_bytes,
    read_raw,
    sample,
    write_raw,
)
from tests.processes import run_python

pytestmark = pytest.mark.fault_row(32)


@pytest.fixture
def whole(tmp_path):
    """A file of 64 datapoints, in some leaves and a branch."""
    path = str(tmp_path / "whole")
    LMDBSerializer.save(flow_of(sample(COUNT)), path)
    return path


def test_a_file_that_is_cut_off(whole, tmp_path):
    data = read_bytes(whole)
    for size in PAGE + 100, 2 * PAGE, len(data) // 2, len(data) * 4 // 5:
        path = tmp_path / f"cut-{size}"
        path.write_bytes(data[:size])
        with pytest.raises(DamagedLMDB, match=f"{path}: (It is cut off: it has {size} bytes|LMDB)"):
            len(LMDBData(str(path)))


def test_files_that_are_none(tmp_path):
    path = str(tmp_path / "file")
    with pytest.raises(FileNotFoundError, match="no file .*file"):
        LMDBData(path)
    with pytest.raises(FileNotFoundError, match=r"directory without data\.mdb"):
        LMDBData(str(tmp_path))
    for content in b"", b"x", b"x" * 10000, pickle.dumps([1]):
        with open(path, "wb") as file:
            file.write(content)
        with pytest.raises(DamagedLMDB, match="is empty|not an LMDB file|LMDB cannot"):
            len(LMDBData(path))


def test_a_file_with_a_named_database_is_whole(tmp_path):
    path = str(tmp_path / "named")
    with lmdb.open(path, subdir=False, max_dbs=2) as env:
        more = env.open_db(b"more")
        with env.begin(write=True) as transaction:
            transaction.put(b"a", b"1", db=more)
            transaction.put(b"b", b"2")
            transaction.put(b"z", b"3")
    assert list(LMDBData(path, shuffle=False, keys=[b"b", "z"])) == [[b"b", b"2"], [b"z", b"3"]]


@pytest.mark.parametrize(
    "items",
    [
        [(b"a", b"")],
        [(b"%d" % number, b"x" * (number % 3000)) for number in range(3000)],
        [(b"%d" % number * 100, b"x" * 9000) for number in range(300)],
        [(b"k" * 511, b"x" * 2**20), (b"l" * 511, b"y" * 4079), (b"m", b"z" * 4080)],
    ],
    ids=["one", "small", "large", "extreme"],
)
def test_whole_files_of_others(tmp_path, capsys, items):
    path = write_raw(tmp_path / "file", items)
    assert [tuple(record) for record in LMDBData(path, shuffle=False)] == sorted(items)
    found = f"{path} has no list of keys that can be read: all its keys are read"
    assert found in capsys.readouterr().out


def test_a_whole_file_from_which_records_were_taken(tmp_path):
    path = write_raw(tmp_path / "file", [(b"%05d" % i, b"x" * (i % 5000)) for i in range(2000)])
    with lmdb.open(path, map_size=2**26, subdir=False) as env:
        for begin in range(3):
            with env.begin(write=True) as transaction:
                for number in range(begin, 2000, 4):
                    transaction.delete(b"%05d" % number)
                transaction.put(b"new%d" % begin, b"y" * 10000)
    assert [key for key, _ in LMDBData(path, shuffle=False)] == sorted(read_raw(path))


def test_a_file_that_lacks_its_free_pages_is_whole(tmp_path, capsys):
    """LMDB leaves pages out of the file that one transaction has filled and freed."""
    path = str(tmp_path / "file")
    with lmdb.open(path, map_size=2**26, subdir=False) as env:
        for number in range(3):
            with env.begin(write=True) as transaction:
                transaction.put(b"a", b"%d" % number)
                transaction.put(b"b", b"y" * 40000)
                transaction.delete(b"b")
    assert list(LMDBData(path)) == [[b"a", b"2"]]
    assert "lacks pages at its end" in capsys.readouterr().out


def test_a_record_of_another_program_is_told_what_to_do(tmp_path):
    path = write_raw(tmp_path / "file", [(b"a", b"text")])
    with pytest.raises(DamagedLMDB, match=r"a frame with .* read by LMDBData\.$"):
        list(LMDBSerializer.load(path))
    assert list(LMDBData(path)) == [[b"a", b"text"]]


def test_a_damaged_value_is_found_by_its_checksum(whole):
    array = next(each for _, each in sample(COUNT) if len(each) == 5000)
    place = read_bytes(whole).index(array.tobytes()[:64])
    damaged = damage(whole, place, np.uint8([array[0] ^ 1]).tobytes())
    flow = LMDBSerializer.load(damaged, shuffle=False)
    with pytest.raises(DamagedLMDB, match="b'00000007': The checksum of a frame") as caught:
        list(flow)
    assert caught.value.key == b"00000007"
    whole_ones = [each for each in sample(COUNT) if each[0] != 7]
    flow = LMDBSerializer.load(damaged, shuffle=False, max_errors=1)
    assert [number for number, _ in flow] == [number for number, _ in whole_ones]


def test_a_file_without_records(tmp_path):
    path = write_raw(tmp_path / "file", [])
    with pytest.raises(DamagedLMDB, match="no records in it"):
        len(LMDBData(path))


def test_files_of_lmdb_1(tmp_path):
    if lmdb.__version__ < "3":
        pytest.skip("this version of lmdb does not know them")
    path = str(tmp_path / "file")
    code = (
        f"from {write_raw.__module__} import write_raw; write_raw({path!r}, [(b'a', bytes(9000))])"
    )
    run_python("-c", code, env={"LMDB_DEFAULT_LIB_VERSION": "1"}, check=True)
    assert list(LMDBData(path)) == [[b"a", bytes(9000)]]
    os.truncate(path, 3 * PAGE)
    with pytest.raises(DamagedLMDB, match="cut off|LMDB c"):
        len(LMDBData(path))


def test_the_keys_of_a_file_that_changed_are_found_again(tmp_path):
    path = write_raw(tmp_path / "file", [(b"a", b"1")])
    flow = LMDBData(path)
    assert list(flow) == [[b"a", b"1"]]
    flow.close()
    write_raw(path, [(b"b", b"2")])
    assert sorted(flow) == [[b"a", b"1"], [b"b", b"2"]]
