"""What is written to LMDB files is read again; a file is there whole or not at all."""

import os
import re
import signal

import lmdb
import msgpack
import numpy as np
import pytest

from tensorpack.dataflow import DataFromGenerator
from tensorpack.dataflow.files.lmdb_file import LMDBDataPoint, LMDBSerializer, dump_dataflow_to_lmdb
from tests.contracts.dataflow import assert_same
from tests.dataflow.flows import flow_of
from tests.dataflow.lmdb_files import read_raw, sample
from tests.processes import run_python

ALL_KINDS = [
    [1, -(2**63), 2.5, True, None, "text", b"bytes"],
    {"image": np.arange(24, dtype=np.uint8).reshape(2, 3, 4), "label": np.float32(3)},
    [np.zeros((0, 3)), np.array("text"), [1, [2, (3, 4)]]],
    (np.array(5), np.arange(4, dtype=">i4")),
]


def test_what_was_saved_is_loaded(tmp_path):
    path = tmp_path / "new.lmdb"
    LMDBSerializer.save(flow_of(ALL_KINDS), path)
    flow = LMDBSerializer.load(path, shuffle=False)
    flow.reset_state()
    assert len(flow) == 4
    assert_same(list(flow), ALL_KINDS)
    assert os.listdir(str(tmp_path)) == ["new.lmdb"]


def test_the_keys_are_those_of_all_versions(tmp_path):
    path = str(tmp_path / "new.lmdb")
    LMDBSerializer.save(flow_of(sample(7)), path)
    records = read_raw(path)
    keys = [b"%08d" % number for number in range(7)]
    assert sorted(records) == [*keys, b"__keys__"]
    assert msgpack.unpackb(records[b"__keys__"]) == keys


def test_a_directory(tmp_path):
    dump_dataflow_to_lmdb(flow_of(sample(3)), str(tmp_path))
    assert os.listdir(str(tmp_path)) == ["data.mdb"]
    with pytest.raises(FileExistsError, match=r"data\.mdb exists"):
        dump_dataflow_to_lmdb(flow_of(sample(5)), tmp_path)
    assert os.listdir(str(tmp_path)) == ["data.mdb"]
    assert_same(list(LMDBDataPoint(str(tmp_path), False)), sample(3))
    assert_same(next(iter(LMDBDataPoint(tmp_path / "data.mdb", False))), sample(1)[0])


@pytest.mark.parametrize("frequency", [1, 2, 5, 9])
def test_write_frequency(tmp_path, frequency):
    """A transaction of LMDB has this many datapoints; the last one has the list of keys, too."""
    path = str(tmp_path / "new.lmdb")
    dump_dataflow_to_lmdb(flow_of(sample(5)), path, write_frequency=frequency)
    assert_same(list(LMDBDataPoint(path, shuffle=False)), sample(5))
    with lmdb.open(path, subdir=False, readonly=True, lock=False) as env:
        assert env.info()["last_txnid"] == 5 // frequency + 1


def test_a_datapoint_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(TypeError, match="Datapoint 2 cannot be written"):
        dump_dataflow_to_lmdb(flow_of([[0], [1], [{1, 2}]]), tmp_path / "new.lmdb")
    assert os.listdir(str(tmp_path)) == []


def write_until(middle):
    """Writes 1000 datapoints, in a process of its own, and calls a function after 500."""

    def generate():
        for number in range(1000):
            yield [np.full(5000, number)]
            if number == 500:
                middle()

    dump_dataflow_to_lmdb(DataFromGenerator(generate), "new.lmdb", 10)


WRITE = f"from {__name__} import *; write_until"


def test_a_killed_writer_leaves_no_file_of_that_name(tmp_path):
    done = run_python("-c", f"{WRITE}(lambda: os.kill(os.getpid(), 9))", cwd=str(tmp_path))
    assert done.returncode == -signal.SIGKILL
    (left,) = os.listdir(str(tmp_path))
    assert left.startswith(".new.lmdb.") and left.endswith(".tmp")
    dump_dataflow_to_lmdb(flow_of(sample(2)), tmp_path / "new.lmdb")


def test_a_disk_without_space(tmp_path):
    """The limit of the size of a file stands for it: it stops the writer at the same calls."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20)); "
    done = run_python("-c", f"{limit}{WRITE}(lambda: print('too far'))", cwd=str(tmp_path))
    assert done.returncode == 1
    assert re.search(rb"OSError: LMDB cannot write .*new\.lmdb.*: is the disk full", done.stderr)
    assert b"too far" not in done.stdout
    assert os.listdir(str(tmp_path)) == []
