"""TFRecord files are equal to those of TensorFlow byte by byte; damage is reported or counted."""

import gzip
import pickle
import struct

import numpy as np
import pytest

from tensorpack.dataflow import DamagedFile, DataFromList
from tensorpack.dataflow.files.tfrecord import (
    TFRecordBytes,
    TFRecordData,
    TFRecordSerializer,
    dump_dataflow_to_tfrecord,
)
from tests.contracts.dataflow import DataFlowContract, assert_same
from tests.dataflow.flows import Canary
from tests.dataflow.old_bytes import pack_of_2017
from tests.processes import open_paths

DATAPOINTS = [
    [np.arange(6, dtype=np.uint8).reshape(2, 3), 1],
    [np.zeros((0, 2), np.float32), -5],
    [np.float64(0.1), "text"],
    [np.array([True, False]), b"bytes\0"],
]


def crc_bit_by_bit(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc_bit_by_bit(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) % 2**32 + 0xA282EAD8) % 2**32)


def record(data, length=None):
    """A record as the format describes it, perhaps with a length that is a lie."""
    length = struct.pack("<Q", len(data) if length is None else length)
    return length + masked(length) + data + masked(data)


def flipped(data, place):
    changed = bytearray(data)
    changed[place] ^= 1 << place % 8
    return bytes(changed)


def write(path, *parts):
    path.write_bytes(b"".join(parts))
    return str(path)


def datapoints_of(count):
    return DataFromList([[i, np.full((2, 2), i, np.float32)] for i in range(count)], shuffle=False)


class FromFile(DataFlowContract):
    length = 5

    @pytest.fixture(autouse=True)
    def file(self, tmp_path):
        self.path = str(tmp_path / "five.tfrecord")
        TFRecordSerializer.save(datapoints_of(5), self.path)


class TestSizedTFRecordData(FromFile):
    def make_flow(self):
        return TFRecordData(self.path, size=5)


class TestTFRecordBytes(FromFile):
    has_len = False

    def make_flow(self):
        return TFRecordBytes(self.path)


class TestWithDamagedRecords(DataFlowContract):
    """What is left of seven records of which two are damaged."""

    length = 5
    has_len = False

    @pytest.fixture(autouse=True)
    def file(self, tmp_path):
        records = [record(bytes([65 + i])) for i in range(7)]
        records[2] = records[2][:12] + b"?" + records[2][13:]
        self.path = write(tmp_path / "a", *records[:-1], records[-1][:-1])

    def make_flow(self):
        return TFRecordBytes(self.path, max_errors=2)


def test_datapoints_come_back_as_they_were_from_bytes_of_the_format(tmp_path):
    path = str(tmp_path / "a.tfrecord")
    dump_dataflow_to_tfrecord(DataFromList(DATAPOINTS, shuffle=False), path)
    records = [data for (data,) in TFRecordBytes(path)]
    assert len(records) == len(DATAPOINTS)
    assert (tmp_path / "a.tfrecord").read_bytes() == b"".join(map(record, records))
    assert_same(list(TFRecordSerializer.load(path)), DATAPOINTS)


def test_size_is_a_limit_and_a_promise(tmp_path):
    path = write(tmp_path / "a", *(record(bytes([i])) for i in range(3)))
    assert list(TFRecordBytes(path, size=2)) == [[b"\0"], [b"\1"]]
    assert len(TFRecordBytes(path, size=2)) == 2
    assert list(TFRecordBytes(path, size=0)) == []
    datapoints = iter(TFRecordBytes(path, size=4))
    assert [next(datapoints) for _ in range(3)] == [[b"\0"], [b"\1"], [b"\2"]]
    with pytest.raises(ValueError, match="a has 3 records, but size=4"):
        next(datapoints)


@pytest.mark.fault_row(33)
def test_a_file_cut_off_anywhere_in_its_last_record(tmp_path):
    begin = record(b"first") + record(b"second")
    last = record(b"the third one")
    for size in range(1, len(last)):
        path = write(tmp_path / "a", begin, last[:size])
        assert list(TFRecordBytes(path, max_errors=1)) == [[b"first"], [b"second"]]
        with pytest.raises(DamagedFile, match=f"a: record 2 at byte {len(begin)}: It is cut off"):
            list(TFRecordBytes(path))


@pytest.mark.fault_row(33)
def test_a_flipped_bit_in_the_length_or_its_checksum_loses_the_rest(tmp_path):
    begin = record(b"first")
    for place in range(12):
        path = write(tmp_path / "a", begin, flipped(record(b"second"), place), record(b"third"))
        datapoints = iter(TFRecordBytes(path, max_errors=9))
        assert next(datapoints) == [b"first"]
        match = f"a: record 1 at byte {len(begin)}: A wrong checksum of its length"
        with pytest.raises(DamagedFile, match=match):
            next(datapoints)


@pytest.mark.fault_row(33)
def test_a_flipped_bit_in_the_body_or_its_checksum_loses_one_record(tmp_path, capsys):
    begin, middle = record(b"first"), record(b"second")
    for place in range(12, len(middle)):
        path = write(tmp_path / "a", begin, flipped(middle, place), record(b"third"))
        where = f"a: record 1 at byte {len(begin)}: A wrong checksum: its 6 bytes"
        with pytest.raises(DamagedFile, match=where):
            list(TFRecordBytes(path))
        capsys.readouterr()
        assert list(TFRecordBytes(path, max_errors=1)) == [[b"first"], [b"third"]]
        out = capsys.readouterr().out
        assert "Skipped 1 of at most 1" in out and where in out


@pytest.mark.fault_row(33)
def test_one_damaged_record_more_than_allowed_is_an_error(tmp_path):
    """Those that were skipped before a state count as well."""
    bad = flipped(record(b"bad"), -1)
    path = write(tmp_path / "a", bad, record(b"good"), bad, record(b"good"), bad)
    assert len(list(TFRecordBytes(path, max_errors=3))) == 2
    assert list(TFRecordBytes(path, size=4, max_errors=2)) == [[b"good"], [b"good"]]
    flow, twin = TFRecordBytes(path, max_errors=2), TFRecordBytes(path, max_errors=2)
    assert next(iter(flow)) == [b"good"]
    twin.load_state_dict(flow.state_dict())
    datapoints = iter(twin)
    assert next(datapoints) == [b"good"]
    with pytest.raises(DamagedFile, match=r"record 4 at byte \d+: .* has skipped 2 already"):
        next(datapoints)


@pytest.mark.fault_row(33)
def test_a_pickle_in_a_record_is_not_run_unless_the_user_trusts_it(tmp_path):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path = write(tmp_path / "a", record(pickle.dumps([Canary(tmp_path / "ran")], protocol)))
        with pytest.raises(ValueError, match="record 0 at byte 0: "):
            list(TFRecordData(path))
    assert not (tmp_path / "ran").exists()
    assert list(TFRecordData(path, allow_pickle=True)) == [[None]] and (tmp_path / "ran").is_dir()


@pytest.mark.fault_row(33)
@pytest.mark.parametrize("data", [b"text", bytes(100), b""])
def test_a_record_of_another_program(tmp_path, data):
    path = write(tmp_path / "a", record(data))
    match = "record 0 at byte 0: It is not a datapoint: .* are read by TFRecordBytes"
    with pytest.raises(DamagedFile, match=match):
        list(TFRecordData(path))
    assert list(TFRecordData(path, max_errors=1)) == []
    assert list(TFRecordBytes(path)) == [[data]]


def test_records_of_old_tensorpack(tmp_path):
    """Those of 2017 are msgpack, later ones are pickles."""
    path = write(tmp_path / "a", *[record(pack_of_2017(dp)) for dp in DATAPOINTS[:2]])
    assert_same(list(TFRecordData(path)), DATAPOINTS[:2])
    path = write(tmp_path / "b", *[record(pickle.dumps(dp, 4)) for dp in DATAPOINTS])
    assert_same(list(TFRecordSerializer.load(path)), DATAPOINTS)


class TestCompressed(DataFlowContract):
    length = 300

    @pytest.fixture(autouse=True)
    def file(self, tmp_path):
        path = str(tmp_path / "whole")
        TFRecordSerializer.save(datapoints_of(300), path)
        with open(path, "rb") as file:
            self.path = write(tmp_path / "a.gz", gzip.compress(file.read()))

    def make_flow(self):
        return TFRecordSerializer.load(self.path, size=300)


@pytest.mark.fault_row(33)
def test_damaged_files_of_gzip(tmp_path):
    body = b"".join(record(np.random.RandomState(i).bytes(500)) for i in range(60))
    path = write(tmp_path / "a", gzip.compress(flipped(body, 5000)))
    with pytest.raises(DamagedFile, match="record 9 at byte 4644: A wrong checksum"):
        list(TFRecordBytes(path))
    assert len(list(TFRecordBytes(path, max_errors=1))) == 59
    packed = gzip.compress(body)
    for damaged in packed[:11], packed[:20000], packed[:-4], flipped(packed, 20000):
        path = write(tmp_path / "a", damaged)
        with pytest.raises(DamagedFile, match=r"a: record \d+ at byte \d+: "):
            list(TFRecordBytes(path, max_errors=9))


def test_a_length_that_begins_as_a_file_of_gzip_does(tmp_path):
    path = write(tmp_path / "a", record(b"short", 0x88B1F))
    assert (tmp_path / "a").read_bytes()[:3] == gzip.compress(b"")[:3]
    with pytest.raises(DamagedFile, match="record 0 at byte 0: It is cut off"):
        list(TFRecordBytes(path))


def test_files_and_arguments_that_are_wrong(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        TFRecordData(tmp_path / "missing")
    empty = write(tmp_path / "empty")
    assert list(TFRecordBytes(empty)) == []
    with pytest.raises(ValueError, match="Is this a TFRecord file"):
        list(TFRecordBytes(write(tmp_path / "text", b"some text, and more of it")))
    with pytest.raises(ValueError, match="size must be a whole number of at least 0, but got -1"):
        TFRecordBytes(empty, size=-1)


def test_a_state_of_another_file(tmp_path):
    one = write(tmp_path / "one", record(b"a"))
    other = write(tmp_path / "other", record(b"a"), record(b"b"))
    state = TFRecordBytes(one).state_dict()
    with pytest.raises(ValueError, match="its file had 17 bytes, .*other has 34"):
        TFRecordBytes(other).load_state_dict(state)


def test_a_resumed_pass_does_not_read_what_was_read(tmp_path):
    path = tmp_path / "a"
    flow = TFRecordBytes(write(path, record(b"a"), record(b"b")))
    next(iter(flow))
    twin = TFRecordBytes(write(path, bytes(len(record(b"a"))), record(b"b")))
    twin.load_state_dict(flow.state_dict())
    assert list(twin) == [[b"b"]]


def test_the_file_is_closed_when_a_pass_ends_or_is_given_up(tmp_path):
    path = write(tmp_path / "a", record(b"a"), record(b"b"))
    flow = TFRecordBytes(path)
    going = iter(flow)
    next(going)
    assert path in open_paths()
    going.close()
    assert path not in open_paths()
    list(flow)
    assert path not in open_paths()
