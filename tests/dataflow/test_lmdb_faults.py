"""Damaged LMDB files give the right data or an error that names them; nothing crashes or hangs."""

import os
import pickle
import struct
import subprocess
import sys

import lmdb
import numpy as np
import pytest

from tensorpack.dataflow._lmdb import pages, records
from tensorpack.dataflow._lmdb import probe as probe_module
from tensorpack.dataflow._lmdb.pages import PageError, is_known_format, read_keys, read_meta
from tensorpack.dataflow._lmdb.probe import probe
from tensorpack.dataflow.lmdb import DamagedLMDB, LMDBData, LMDBSerializer
from tensorpack.dataflow.raw import DataFromList
from tests.checks import ROOT
from tests.dataflow.lmdb_files import outcome, read_raw, sample, try_all, write_raw

pytestmark = pytest.mark.fault_row(32)

PAGE = 4096
COUNT = 64


@pytest.fixture
def whole(tmp_path):
    """A file of 64 datapoints, in some leaves and a branch."""
    path = str(tmp_path / "whole")
    LMDBSerializer.save(DataFromList(sample(COUNT), shuffle=False), path)
    (tmp_path / "count").write_text(str(COUNT))
    return path


def keys_of(path):
    with open(path, "rb") as file:
        assert is_known_format(file)
        return list(read_keys(file))


def damage(path, place, data):
    """Writes some bytes into a new copy of a file, and returns its path."""
    with open(path, "rb") as file:
        changed = bytearray(file.read())
    changed[place : place + len(data)] = data
    copy = path + "-damaged"
    if os.path.exists(copy):
        os.unlink(copy)  # not written over: it may be mapped
    with open(copy, "wb") as file:
        file.write(changed)
    return copy


def leaf_of(path, key):
    """The offset of the leaf that holds a key, and that of the key."""
    with open(path, "rb") as file:
        tree = pages._Tree(file, read_meta(file))
        for number in tree.leaves():
            if key in tree.keys(number):
                file.seek(tree.offset(number))
                return tree.offset(number), tree.offset(number) + file.read(PAGE).index(key)
    raise AssertionError(f"There is no key {key!r}.")


def root_of(path):
    """The offset of the first page of the tree."""
    with open(path, "rb") as file:
        return read_meta(file).root * PAGE


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


def test_a_branch_that_names_itself(tmp_path):
    path = write_raw(tmp_path / "file", [(b"%d" % i, b"x" * 100) for i in range(1000)])
    branch = root_of(path)
    with open(path, "rb") as file:
        (first,) = struct.unpack_from("=H", file.read(), branch + 16)
    damaged = damage(path, branch + first, struct.pack("=I", branch // PAGE))
    with pytest.raises(PageError, match="cannot be a part"):
        keys_of(damaged)


def test_keys_in_disorder(whole):
    _, place = leaf_of(whole, b"00000007")
    with pytest.raises(DamagedLMDB, match="b'00000002' is not in its place"):
        LMDBData(damage(whole, place, b"00000002"))


def test_a_wrong_number_of_records(whole):
    """In both headers, for one of them counts."""
    damaged = whole
    for page in 0, PAGE:
        damaged = damage(damaged, page + 120, struct.pack("=Q", 5))
    with pytest.raises(PageError, match=f"There are {COUNT + 2} records, but the header says 5"):
        keys_of(damaged)


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


@pytest.mark.parametrize(
    "program, error, message",
    [
        ("import os; os.kill(os.getpid(), 11)", DamagedLMDB, "crashed on it.*SIGSEGV"),
        ("import os; os.kill(os.getpid(), 7)", DamagedLMDB, "crashed on it.*SIGBUS"),
        ("raise SystemExit(3)", RuntimeError, "code 3.*pass probe=False"),
        ("raise KeyError('deep inside')", RuntimeError, "(?s)code 1.*deep inside"),
        ("print('{ 3'); raise SystemExit(3)", RuntimeError, "code 3"),
    ],
)
def test_the_process_that_checks_fails(whole, monkeypatch, program, error, message):
    monkeypatch.setattr(probe_module, "_PROGRAM", program)
    with pytest.raises(error, match=message) as caught:
        LMDBData(whole)
    assert whole in str(caught.value)


def test_the_process_that_checks_hangs(whole, monkeypatch):
    monkeypatch.setattr(probe_module, "_PROGRAM", "import time; time.sleep(1000)")
    monkeypatch.setattr(probe_module, "_SECONDS", 0.3)
    with pytest.raises(RuntimeError, match="took more than 0 s. If you trust the file"):
        LMDBData(whole)


def test_the_process_that_checks_takes_nothing_from_the_working_directory(
    whole, tmp_path, monkeypatch
):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    for name in "json", "struct", "runpy", "lmdb":
        (folder / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(folder)
    probe(whole)


def test_without_a_probe_no_process_is_started(whole, monkeypatch):
    monkeypatch.setattr(records, "probe", None)
    assert len(LMDBData(whole, probe=False)) == COUNT


def test_a_file_is_probed_once_and_again_when_it_has_changed(whole, monkeypatch):
    probed = []
    monkeypatch.setattr(records, "probe", probed.append)
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
