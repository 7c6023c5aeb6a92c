"""Damaged LMDB files give the right data or an error that names them; nothing crashes or hangs."""

import os
import pickle
import struct

import lmdb
import numpy as np
import pytest

from tensorpack.dataflow.files import lmdb_file
from tensorpack.dataflow.files import lmdb_open as file_module
from tensorpack.dataflow.files.lmdb_file import DamagedLMDB, LMDBData, LMDBSerializer
from tensorpack.dataflow.files.lmdb_open import probe
from tests.dataflow.flows import flow_of
from tests.dataflow.lmdb_files import (
    COUNT,
    PAGE,
    damage,
    node_of,
    read_bytes,
    read_raw,
    root_of,
    sample,
    try_all,
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flipped", "cut"])
def test_every_page_damaged(whole, tmp_path, kind):
    """In a process of its own, whose end tells whether LMDB crashed."""
    code = f"from {try_all.__module__} import try_all; try_all({str(tmp_path)!r}, {kind!r})"
    done = run_python("-X", "faulthandler", "-c", code)
    errors = done.stderr.decode(errors="replace")
    assert done.returncode == 0, errors[-3000:]
    tried, right, wrong = map(int, done.stdout.split()[-3:])
    assert right + wrong == tried > 100
    assert wrong > tried / 10 if kind == "flipped" else wrong > tried * 0.9
    assert right > 0 or kind == "cut"  # what is not used was changed


def test_a_value_that_leads_out_of_the_file(whole):
    """liblmdb would copy gigabytes from behind the end of the file, and crash."""
    size, place = os.path.getsize(whole), node_of(whole, b"00000007")
    length, flags, key_size = struct.unpack_from("=IHH", read_bytes(whole), place)
    assert (flags, key_size) == (1, 8)
    for wrong in length + PAGE * 20, length + size, 2**31:
        with pytest.raises(DamagedLMDB, match="crashed on it.*SIG|two of them overlap"):
            LMDBData(damage(whole, place, struct.pack("=I", wrong)))


def test_a_value_that_is_that_of_another_key(tmp_path):
    """Its checksum is right, so nothing else would notice."""
    path = write_raw(tmp_path / "file", [(b"%08d" % i, bytes([i]) * 9000) for i in range(4)])
    data = read_bytes(path)
    pages = [data[place : place + 8] for place in (node_of(path, b"%08d" % i) + 16 for i in (1, 2))]
    assert pages[0] != pages[1]
    with pytest.raises(DamagedLMDB, match="two of them overlap"):
        LMDBData(damage(path, node_of(path, b"00000002") + 16, pages[0]))


def test_keys_in_disorder(whole):
    place = node_of(whole, b"00000007") + 8
    with pytest.raises(DamagedLMDB, match="The key b'0000000.' is not in its place"):
        LMDBData(damage(whole, place, b"00000002"))


def test_a_branch_that_names_itself(tmp_path):
    path = write_raw(tmp_path / "file", [(b"%d" % i, b"x" * 100) for i in range(1000)])
    branch = root_of(path)
    (first,) = struct.unpack_from("=H", read_bytes(path), branch + 16)
    damaged = damage(path, branch + first, struct.pack("=I", branch // PAGE))
    with pytest.raises(DamagedLMDB) as caught:
        LMDBSerializer.load(damaged)
    assert caught.value.path == damaged and damaged in str(caught.value)


@pytest.mark.parametrize("number", [5, COUNT + 3, 2**60])
def test_a_wrong_number_of_records(whole, number):
    """In both headers, for one of them counts."""
    damaged = whole
    for page in 0, PAGE:
        damaged = damage(damaged, page + 120, struct.pack("=Q", number))
    with pytest.raises(DamagedLMDB, match=f"records.* header names|the {number} records"):
        LMDBData(damaged)


@pytest.mark.parametrize("probed", [True, False])
def test_files_that_are_none(tmp_path, probed):
    path = str(tmp_path / "file")
    with pytest.raises(FileNotFoundError, match="no file .*file"):
        LMDBData(path, probe=probed)
    with pytest.raises(FileNotFoundError, match=r"directory without data\.mdb"):
        LMDBData(str(tmp_path), probe=probed)
    for content in b"", b"x", b"x" * 10000, pickle.dumps([1]):
        with open(path, "wb") as file:
            file.write(content)
        with pytest.raises(DamagedLMDB, match="is empty|not an LMDB file|LMDB cannot"):
            len(LMDBData(path, probe=probed))


def test_a_file_with_a_named_database_is_whole(tmp_path):
    path = str(tmp_path / "named")
    with lmdb.open(path, subdir=False, max_dbs=2) as env:
        more = env.open_db(b"more")
        with env.begin(write=True) as transaction:
            transaction.put(b"a", b"1", db=more)
            transaction.put(b"b", b"2")
            transaction.put(b"z", b"3")
    assert list(LMDBData(path, shuffle=False, keys=[b"b", "z"])) == [[b"b", b"2"], [b"z", b"3"]]


def test_several_values_of_a_key_are_refused(whole):
    damaged = whole
    for page in 0, PAGE:
        damaged = damage(damaged, page + 92, struct.pack("=H", 4))
    with pytest.raises(DamagedLMDB, match="A key can have several values"):
        LMDBData(damaged)


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
    code = f"from {try_all.__module__} import write_raw; write_raw({path!r}, [(b'a', bytes(9000))])"
    run_python("-c", code, env={"LMDB_DEFAULT_LIB_VERSION": "1"}, check=True)
    assert list(LMDBData(path)) == [[b"a", bytes(9000)]]
    os.truncate(path, 3 * PAGE)
    with pytest.raises(DamagedLMDB, match="LMDB c"):
        LMDBData(path)


@pytest.mark.parametrize(
    "program, error, message",
    [
        ("import os; os.kill(os.getpid(), 11)", DamagedLMDB, "crashed on it.*SIGSEGV"),
        ("raise SystemExit(3)", RuntimeError, "failed .3..*pass probe=False"),
        ("raise KeyError('deep inside')", RuntimeError, "(?s)failed .1..*deep inside"),
        ("import time; time.sleep(1000)", RuntimeError, "took more than 0 s. If you trust"),
    ],
)
def test_the_process_that_checks_fails(whole, monkeypatch, program, error, message):
    monkeypatch.setattr(file_module, "_PROGRAM", program)
    if "sleep" in program:
        monkeypatch.setattr(file_module, "_PROBE_SECONDS", 0.3)
    with pytest.raises(error, match=message) as caught:
        LMDBData(whole)
    assert whole in str(caught.value)


def test_the_process_that_checks_takes_nothing_from_the_working_directory(
    whole, tmp_path, monkeypatch
):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in "json", "struct", "runpy", "lmdb":
        (folder / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(folder)
    probe(whole)


def test_a_file_is_probed_once_and_again_when_it_has_changed(whole, monkeypatch):
    probed = []
    monkeypatch.setattr(lmdb_file, "probe", probed.append)
    assert len(LMDBData(whole, probe=False)) == COUNT
    assert probed == []
    flow = LMDBData(whole)
    twin = pickle.loads(pickle.dumps(flow))
    for each in flow, twin:
        each.reset_state()
        assert len(list(each)) == COUNT
        each.close()
    assert probed == [whole]
    os.utime(whole, (1, 1))
    assert len(list(flow)) == COUNT
    assert probed == [whole, whole]
