"""Damaged LMDB files give the right data or an error that names them; nothing crashes or hangs."""

import os
import pickle
import struct
import subprocess
import sys

import lmdb
import numpy as np
import pytest

from tensorpack.dataflow._lmdb.pages import is_known_format
from tensorpack.dataflow.lmdb import DamagedLMDB, LMDBData, LMDBSerializer
from tensorpack.dataflow.raw import DataFromList
from tests.checks import ROOT
from tests.dataflow.lmdb_files import (
    COUNT,
    PAGE,
    damage,
    leaf_of,
    outcome,
    sample,
    try_all,
    write_raw,
)

pytestmark = pytest.mark.fault_row(32)


@pytest.mark.parametrize("kind", ["flipped", "cut"])
def test_every_page_damaged(whole, tmp_path, kind):
    """In a process of its own, whose end tells whether LMDB crashed."""
    code = f"from {try_all.__module__} import try_all; try_all({str(tmp_path)!r}, {kind!r})"
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", code],
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
    )
    errors = done.stderr.decode(errors="replace")
    assert done.returncode == 0, errors[-3000:]
    tried, right, wrong = map(int, done.stdout.split()[-3:])
    assert right + wrong == tried > 100
    assert wrong > tried / 4 if kind == "flipped" else wrong > tried * 0.9
    assert right > 0 or kind == "cut"  # what is not used was changed


def test_a_probed_file_that_is_damaged(whole):
    leaf, _ = leaf_of(whole, b"00000003")
    for place, data, reason in [
        (leaf + 10, b"\x01", "should be a leaf page"),
        (leaf + 12, b"\xff\xff", "damaged header"),
        (leaf + 16, b"\x00\x00", "damaged list of records"),
    ]:
        damaged = damage(whole, place, data)
        with pytest.raises(DamagedLMDB, match=reason) as caught:
            LMDBSerializer.load(damaged)
        assert caught.value.path == damaged
        assert leaf <= caught.value.offset < leaf + PAGE
        assert f"{damaged}, byte {caught.value.offset}: " in str(caught.value)


def test_a_value_that_leads_out_of_the_file(whole):
    """liblmdb would copy gigabytes from behind the end of the file, and crash."""
    with open(whole, "rb") as file:
        data = file.read()
    place = leaf_of(whole, b"00000007")[1] - 8  # its node: size, flags, size of the key
    size, flags, key_size = struct.unpack_from("=IHH", data, place)
    assert (flags, key_size) == (1, 8)
    for wrong in 2**31, size + len(data):
        damaged = damage(whole, place, struct.pack("=I", wrong))
        with pytest.raises(DamagedLMDB, match="b'00000007' lies outside of the file") as caught:
            LMDBData(damaged)
        assert caught.value.offset == place + 16


def test_keys_in_disorder(whole):
    _, place = leaf_of(whole, b"00000007")
    with pytest.raises(DamagedLMDB, match="b'00000002' is not in its place"):
        LMDBData(damage(whole, place, b"00000002"))


@pytest.mark.parametrize("size", [0, 10, 100, 2 * PAGE - 1, 5 * PAGE])
def test_a_probed_file_that_is_too_short(whole, size):
    os.truncate(whole, size)
    with pytest.raises(DamagedLMDB, match="whole") as caught:
        LMDBSerializer.load(whole)
    assert caught.value.path == whole


@pytest.mark.parametrize("probed", [True, False])
def test_files_that_are_none(tmp_path, probed):
    path = str(tmp_path / "file")
    with pytest.raises(FileNotFoundError, match="no LMDB file .*file"):
        LMDBData(path, probe=probed)
    with pytest.raises(FileNotFoundError, match=r"directory without data\.mdb"):
        LMDBData(str(tmp_path), probe=probed)
    for content, reason in [
        (b"", "is empty"),
        (b"x", "not an LMDB file"),
        (b"x" * 10000, "not an LMDB file"),
        (pickle.dumps([1]), "not an LMDB file"),
    ]:
        with open(path, "wb") as file:
            file.write(content)
        with pytest.raises(DamagedLMDB, match=reason):
            LMDBData(path, probe=probed)


def test_other_kinds_of_databases_are_refused(tmp_path):
    named = str(tmp_path / "named")
    with lmdb.open(named, subdir=False, max_dbs=2) as env:
        with env.begin(write=True, db=env.open_db(b"more")) as transaction:
            transaction.put(b"a", b"b")
    with pytest.raises(DamagedLMDB, match="of a special kind"):
        LMDBData(named)


def test_databases_with_special_keys_are_refused(whole):
    """As integers, or several of the same; LMDB would compare them in other ways."""
    for flag in 2, 4, 8:
        damaged = whole
        for page in 0, PAGE:
            damaged = damage(damaged, page + 92, struct.pack("=H", flag))
        with pytest.raises(DamagedLMDB, match="keys are of a special kind"):
            LMDBData(damaged)


def test_a_format_that_is_not_known_is_left_to_lmdb(whole, tmp_path):
    """One that LMDB does not know either is an error; this is what LMDB 1.0 would be to it."""
    for page in 0, PAGE:
        whole = damage(whole, page + 20, struct.pack("=I", 77))
    with pytest.raises(DamagedLMDB, match="LMDB cannot read it"):
        LMDBData(whole)


def test_a_damaged_value_is_found_by_its_checksum(whole):
    with open(whole, "rb") as file:
        data = file.read()
    (array,) = [each for _, each in sample(COUNT) if len(each) == 5000][:1]
    place = data.index(array.tobytes()[:64])
    damaged = damage(whole, place, np.uint8([array[0] ^ 1]).tobytes())
    flow = LMDBSerializer.load(damaged, shuffle=False)
    with pytest.raises(DamagedLMDB, match="b'00000007': The checksum of a frame") as caught:
        list(flow)
    assert caught.value.key == b"00000007"
    whole_ones = [each for each in sample(COUNT) if each[0] != 7]
    flow = LMDBSerializer.load(damaged, shuffle=False, max_errors=1)
    assert [number for number, _ in flow] == [number for number, _ in whole_ones]


def test_a_header_that_seems_newer_than_it_is(tmp_path):
    """LMDB takes the older state of the file then, and says nothing. It is whole, too."""
    path = str(tmp_path / "file")
    LMDBSerializer.save(DataFromList(sample(9), shuffle=False), path, write_frequency=2)
    with open(path, "rb") as file:
        data = file.read()
    outcomes = []
    for page, transaction in (0, 6), (PAGE, 5):
        place = page + 16 + 128  # behind the magic number, the two databases and the last page
        assert struct.unpack_from("=Q", data, place) == (transaction,)
        for bit in range(64):
            wrong = struct.pack("=Q", transaction ^ 1 << bit)
            outcomes.append(outcome(damage(path, place, wrong), sample(9)))
    assert outcomes.count("error") >= 126  # 6 may become 4 and 5 may become 7: in a row again
    header = bytearray(data[PAGE + 16 : PAGE + 152])
    header[-8:] = struct.pack("=Q", 4)
    assert outcome(damage(path, 16, header), sample(9)) == "right"


def test_a_file_without_records(tmp_path):
    path = write_raw(tmp_path / "file", [])
    with pytest.raises(DamagedLMDB, match="no records in it"):
        len(LMDBData(path))


def test_files_of_lmdb_1(tmp_path):
    """Nothing is known here about their pages, so LMDB itself reads all of them in the probe."""
    if lmdb.__version__ < "3":
        pytest.skip("this version of lmdb does not know them")
    path = str(tmp_path / "file")
    code = f"from {try_all.__module__} import write_raw; write_raw({path!r}, [(b'a', bytes(9000))])"
    subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), "LMDB_DEFAULT_LIB_VERSION": "1"},
        check=True,
        timeout=60,
    )
    with open(path, "rb") as file:
        assert not is_known_format(file)
    assert list(LMDBData(path)) == [[b"a", bytes(9000)]]
    os.truncate(path, 3 * PAGE)
    with pytest.raises(DamagedLMDB, match="LMDB c"):
        LMDBData(path)
