"""Damaged LMDB files give the right data or an error that names them."""

import pickle

import lmdb
import numpy as np
import pytest

from tensorpack.dataflow import DamagedFile, ProxyDataFlow
from tensorpack.dataflow.files.lmdb_file import LMDBData, LMDBDataPoint, LMDBSerializer
from tensorpack.utils.serialize import dumps
from tests.dataflow.flows import flow_of
from tests.dataflow.lmdb_files import PAGE, change_values, damage, read_bytes, sample, write_raw
from tests.dataflow.old_bytes import pack_of_2017

pytestmark = pytest.mark.fault_row(32)

COUNT = 64


@pytest.fixture
def whole(tmp_path):
    """A file of 64 datapoints, in some leaves and a branch."""
    path = str(tmp_path / "whole")
    LMDBSerializer.save(flow_of(sample(COUNT)), path)
    return path


def test_a_file_that_is_cut_off(whole, tmp_path):
    data = read_bytes(whole)
    for size in 0, 100, PAGE + 100, 2 * PAGE, len(data) // 2, len(data) * 4 // 5:
        path = tmp_path / f"cut-{size}"
        path.write_bytes(data[:size])
        message = f"{path}( is cut off: it has|: LMDB cannot open its) {size} bytes"
        with pytest.raises(DamagedFile, match=message):
            len(LMDBData(path))


def test_damage_to_the_tree_of_pages_names_the_file(whole):
    damaged = damage(whole, 2 * PAGE, bytes(len(read_bytes(whole)) - 2 * PAGE))
    with pytest.raises(DamagedFile, match=f"{damaged}: LMDB cannot read its keys"):
        len(LMDBData(damaged))


def test_files_of_other_formats(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"data\.mdb"):
        LMDBData(tmp_path / "data.mdb")
    path = tmp_path / "file"
    for content in b"x" * 10000, pickle.dumps([1]):
        path.write_bytes(content)
        with pytest.raises(DamagedFile, match=f"{path}: LMDB cannot open.*not an LMDB file"):
            len(LMDBData(path))


def test_a_file_that_lacks_its_free_pages_is_whole(tmp_path):
    """LMDB leaves pages out of the file that one transaction has filled and freed."""
    path = str(tmp_path / "file")
    with lmdb.open(path, map_size=2**26, subdir=False) as env:
        for number in range(3):
            with env.begin(write=True) as transaction:
                transaction.put(b"a", b"%d" % number)
                transaction.put(b"b", b"y" * 40000)
                transaction.delete(b"b")
    assert list(LMDBData(path)) == [[b"a", b"2"]]


def test_a_missing_key_is_named_and_may_be_skipped(tmp_path):
    keys = pack_of_2017([b"0", b"1"])
    path = write_raw(tmp_path / "file", [(b"0", b"value"), (b"__keys__", keys)])
    with pytest.raises(DamagedFile, match=f"{path}, key b'1': There is no such key"):
        list(LMDBData(path, shuffle=False))
    flow = LMDBData(path, shuffle=False, keys=["gone", b"0"], max_errors=1)
    assert list(flow) == [[b"0", b"value"]]


def test_a_record_of_another_program(tmp_path):
    path = write_raw(tmp_path / "file", [(b"a", b"text")])
    with pytest.raises(DamagedFile, match=r"a frame with .* read by LMDBData\. "):
        list(LMDBSerializer.load(path))
    assert list(LMDBData(path)) == [[b"a", b"text"]]


def test_a_damaged_value_is_found_by_its_checksum(whole):
    array = next(array for _, array in sample(COUNT) if len(array) == 5000)
    place = read_bytes(whole).index(array.tobytes()[:64])
    damaged = damage(whole, place, np.uint8([array[0] ^ 1]).tobytes())
    message = f"{damaged}, key b'00000007': .*The checksum of a frame"
    with pytest.raises(DamagedFile, match=message):
        list(LMDBSerializer.load(damaged, shuffle=False))
    flow = LMDBSerializer.load(damaged, shuffle=False, max_errors=1)
    assert [number for number, _ in flow] == [number for number in range(COUNT) if number != 7]


@pytest.mark.parametrize(
    "load",
    [
        LMDBSerializer.load,
        lambda path, **options: LMDBDataPoint(LMDBData(path, shuffle=False), **options),
        lambda path, **options: LMDBDataPoint(ProxyDataFlow(LMDBData(path, False)), **options),
    ],
    ids=["file", "records", "flow"],
)
def test_damaged_records_are_skipped_and_counted_for_each_pass(tmp_path, capsys, load):
    path = str(tmp_path / "eight")
    LMDBSerializer.save(flow_of(sample(8)), path)
    value = bytearray(dumps(sample(8)[2]))
    value[-1] ^= 1
    change_values(path, {b"00000002": bytes(value), b"00000005": pickle.dumps([1])[:-2]})
    flow = load(path, max_errors=2)
    capsys.readouterr()
    for _ in range(2):
        assert sorted(number for number, _ in flow) == [0, 1, 3, 4, 6, 7]
        out = capsys.readouterr().out
        assert out.count("Skipped") == 2 and "key b'00000002'" in out and "key b'00000005'" in out
    assert len(flow) == 8
    with pytest.raises(DamagedFile, match=r"b'0000000[25]'.* skipped 1 already"):
        list(load(path, max_errors=1))
