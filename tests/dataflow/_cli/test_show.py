"""`show` tells what is in a file, and where it is damaged."""

import gzip
import importlib.util
import logging
import os
import pickle
import re

import numpy as np
import pytest

from tensorpack.dataflow import LMDBSerializer
from tensorpack.utils._words import size_text
from tests.contracts.dataflow import assert_same
from tests.dataflow._cli.files import (
    EVERYWHERE,
    NAMES,
    change,
    facts,
    flow_of,
    load,
    needs_h5py,
    needs_lmdb,
    numbers,
    places_of_records,
    record,
    save,
)

pytest.importorskip("msgpack")


@pytest.mark.parametrize("suffix", EVERYWHERE)
@pytest.mark.parametrize("check", [False, True])
def test_show(run, tmp_path, suffix, check):
    path = save(tmp_path / f"a{suffix}", numbers(5))
    ran = run("show", path, "--num", "2", *["--check"] * check)
    assert ran.code == 0
    found = facts(ran.out)
    assert (found["file"], found["format"]) == (path, NAMES[suffix])
    assert found["datapoints"] == ("unknown" if suffix == ".tfrecord" else "5")
    assert found["size"].startswith(size_text(os.path.getsize(path)))
    assert "datapoint 0 is\n  list of 2\n    0: int" in ran.out
    assert "datapoint 1 is" in ran.out and "datapoint 2 is" not in ran.out
    assert "    1: ndarray [2, 3] float32 in [1.0, 1.0]\n" in ran.out
    assert ("Checked: 5 datapoints, none is damaged." in ran.out) == check
    assert "no checksums" not in ran.out
    assert "Found" not in ran.out  # the log goes elsewhere


@pytest.mark.parametrize("suffix", EVERYWHERE)
def test_what_a_file_holds_counts_more_than_its_name(run, tmp_path, suffix):
    path = str(tmp_path / "a.csv")
    os.rename(save(tmp_path / f"a{suffix}", numbers(3)), path)
    ran = run("show", path, "--num", "0")
    assert ran.code == 0
    assert facts(ran.out)["format"] == NAMES[suffix]
    assert "datapoint 0" not in ran.out


def test_show_a_table(run, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("name,size\none,1\ntwo,2\n")
    ran = run("show", path, "--dtypes", "str,int32", "--check")
    assert ran.code == 0
    found = facts(ran.out)
    assert (found["columns"], found["datapoints"]) == ("name, size", "2")
    assert "    0: str 'one'\n    1: int32 [] int32 in [1, 1]\n" in ran.out
    assert "The file has no checksums" in ran.out
    found = facts(run("show", path, "--no-header").out)
    assert (found["columns"], found["datapoints"]) == ("none", "3")
    tabs = tmp_path / "a.TSV"
    tabs.write_text("1\t2\n")
    assert "array" not in run("show", tabs, "--no-header", "--dtypes", "float64").out


def test_show_sparse_text(run, tmp_path):
    pytest.importorskip("sklearn")
    path = tmp_path / "a.svm"
    path.write_text("# two lines\n+1 1:0.5 3:2 # one\n-1 2:1e3\n")
    ran = run("show", path)
    assert ran.code == 0, ran.err
    found = facts(ran.out)
    assert (found["format"], found["features"], found["datapoints"]) == ("SVMlight", "3", "2")


def test_files_of_unknown_format(fails, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("some text\n")
    message = fails("show", path)
    assert "begins with b'some text\\n', and its name ends with '.txt'. Known are LMDB" in message
    path.write_bytes(b"")
    assert "begins with b''" in fails("show", path)
    path.write_bytes(gzip.compress(b"1,2"))
    assert "compressed by gzip. Unpack it first" in fails("show", path)
    assert "is a directory without data.mdb" in fails("show", tmp_path)


@pytest.mark.parametrize("suffix", EVERYWHERE)
def test_empty_files(fails, tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"")
    assert str(path) in fails("show", path)


def test_records_of_another_program(run, tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(record(b"") + record(b"some bytes"))
    ran = run("show", path, "--num", "2", "--check")
    assert ran.code == 0
    found = facts(ran.out)
    assert found["contents"] == "records of another program"
    assert "    0: bytes b'some bytes'\n" in ran.out


@needs_lmdb
def test_lmdb_of_others(run, tmp_path):
    from tests.dataflow.lmdb_files import write_raw
    from tests.dataflow.old_bytes import pack_of_2017

    def make(name, value):
        listed = pack_of_2017([b"00000000"])
        return write_raw(tmp_path / name, [(b"00000000", value), (b"__keys__", listed)])

    path = make("of_2017.lmdb", pack_of_2017([5, "text"]))
    ran = run("show", path, "--check")
    assert (ran.code, facts(ran.out)["contents"]) == (0, "datapoints of tensorpack 0.2, as msgpack")
    assert "    1: str 'text'\n" in ran.out
    assert "no checksums" in ran.out

    path = make("of_others.lmdb", b"anything")
    ran = run("show", path)
    assert (ran.code, facts(ran.out)["contents"]) == (0, "keys and values of another program")
    assert "    1: bytes b'anything'\n" in ran.out

    path = make("of_later.lmdb", pickle.dumps([6, np.arange(4)], 2))
    command = ["convert", path, tmp_path / "new.npz"]
    assert facts(run("show", path).out)["contents"] == "datapoints of old tensorpack, as pickles"
    assert run(*command).code == 0
    assert_same(load(tmp_path / "new.npz"), [[6, np.arange(4)]])


@pytest.mark.skipif(not importlib.util.find_spec("google_crc32c"), reason="needs google-crc32c")
def test_a_tfrecord_file_of_pickles_is_converted(run, tmp_path):
    old, new = tmp_path / "old.tfrecord", tmp_path / "new.npz"
    old.write_bytes(record(pickle.dumps([6, np.arange(4)], 2)))
    assert run("convert", old, new).code == 0
    assert_same(load(new), [[6, np.arange(4)]])


@needs_lmdb
def test_the_folder_of_an_lmdb_database(run, tmp_path):
    folder = tmp_path / "folder.lmdb"
    folder.mkdir()
    LMDBSerializer.save(flow_of(numbers(3)), str(folder))
    for path in folder, folder / "data.mdb", f"{folder}{os.sep}":
        ran = run("show", path)
        assert (ran.code, facts(ran.out)["datapoints"]) == (0, "3")


@needs_h5py
def test_the_datasets_that_are_shown(run, fails, tmp_path):
    import h5py

    path = str(tmp_path / "a.h5")
    with h5py.File(path, "w") as file:
        file["train/image"] = np.zeros((4, 2, 2), np.uint8)
        file["train/label"] = np.arange(4)
        file["mean"] = 5.0
    ran = run("show", path, "--check")
    assert ran.code == 0
    found = facts(ran.out)
    assert (found["version"], found["datasets"]) == ("none", "train/image, train/label")
    assert "no checksums" in ran.out
    ran = run("show", path, "--paths", "train/label")
    assert facts(ran.out)["datasets"] == "train/label"
    assert "no dataset 'other'" in fails("show", path, "--paths", "other")
    with h5py.File(path, "w"):
        pass
    assert "has no dataset whose rows could be datapoints" in fails("show", path)


@pytest.mark.parametrize("option", [["--dtypes", "int32"], ["--no-header"], ["--paths", "a"]])
def test_options_that_would_make_no_difference(fails, tmp_path, option):
    path = save(tmp_path / "a.npz", numbers(3))
    assert f"{option[0]} is for files in " in fails("convert", path, tmp_path / "b.npz", *option)
    assert not (tmp_path / "b.npz").exists()


# show --check of what is damaged


def test_damaged_tfrecords(run, fails, tmp_path):
    path = save(tmp_path / "a.tfrecord", numbers(6))
    places = list(places_of_records((tmp_path / "a.tfrecord").read_bytes()))
    for index in 0, 3:
        change(path, places[index] + 30)
    ran = run("show", path, "--check")
    assert ran.code == 1
    lines = ran.out.splitlines()
    begin = lines.index("DAMAGED: 2 found, beside 4 datapoints that are whole:")
    assert [line.split(" has ")[0] for line in lines[begin + 1 :]] == [
        f"{path}: record 0 at byte 0",
        f"{path}: record 3 at byte {places[3]}",
    ]
    assert "Skipped" not in ran.err
    assert "record 0 at byte 0" in fails("show", path)
    change(path, places[4])  # so that the rest is lost
    ran = run("show", path, "--check")
    assert ran.code == 1
    assert "DAMAGED: 3 found, beside 2 datapoints" in ran.out
    assert f"record 4 at byte {places[4]} has a wrong checksum of its length" in ran.out


def test_wrong_lines(run, tmp_path):
    pytest.importorskip("sklearn")
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n3\n4,x\n5,6\n")
    ran = run("show", path, "--check", "--dtypes", "int32")
    assert ran.code == 1
    assert "DAMAGED: 2 found, beside 2" in ran.out
    assert f"{path}: line 3: 1 columns" in ran.out
    assert f"{path}: line 4, column 'b': 'x' is not an integer" in ran.out
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n1 x:1\n1 2:y\n")
    ran = run("show", path, "--check")
    assert ran.code == 1
    assert "DAMAGED: 2 found, beside 1" in ran.out
    assert f"{path}: line 2: " in ran.out and f"{path}: line 3" in ran.out


@needs_lmdb
def test_damaged_lmdb_records(run, fails, tmp_path):
    from tests.dataflow.lmdb_files import change_values, read_raw

    path = save(tmp_path / "a.lmdb", numbers(6))
    keys = b"00000002", b"00000004"
    change_values(path, {key: read_raw(path)[key][:-1] + b"?" for key in keys})
    ran = run("show", path, "--check")
    assert ran.code == 1
    assert "DAMAGED: 2 found, beside 4" in ran.out
    assert "key b'00000002': " in ran.out and "key b'00000004': " in ran.out
    os.truncate(path, os.path.getsize(path) // 2)
    ran = run("show", path, "--check")
    assert ran.code == 1
    assert re.search("DAMAGED: 1 found, beside 0.*\n.*a.lmdb: LMDB", ran.out)
    assert path in fails("show", path)


def test_damage_is_found_whatever_the_log_shows(run, tmp_path, caplog):
    path = save(tmp_path / "a.tfrecord", numbers(6))
    change(path, 30)
    caplog.set_level(logging.CRITICAL, logger="tensorpack")
    ran = run("show", path, "--check")
    assert ran.code == 1
    assert "DAMAGED: 1 found, beside 5" in ran.out


def test_names_cannot_control_the_terminal(run, fails, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"\x1b[31mred","two\nlines"\n1,2\n3,x\n')
    ran = run("show", path)
    assert ran.code == 0
    assert facts(ran.out)["columns"] == "\\x1b[31mred, two\\nlines"
    message = fails("convert", path, tmp_path / "\x1b[2Jb.txt")
    assert "\x1b" not in message and "\\x1b[2Jb.txt" in message
