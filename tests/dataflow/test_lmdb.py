"""LMDB files are read by flows that shuffle, skip, share and close them as they say."""

import multiprocessing
import os
import pickle
import sys

import numpy as np
import pytest

from tensorpack.dataflow import ProxyDataFlow
from tensorpack.dataflow.files.lmdb_file import (
    DamagedLMDB,
    LMDBData,
    LMDBDataDecoder,
    LMDBDataPoint,
    LMDBSerializer,
    dump_dataflow_to_lmdb,
)
from tensorpack.utils.serialize import dumps
from tensorpack.utils.workers.processes import ProcessGroup
from tests.contracts.dataflow import DataFlowContract, assert_same
from tests.dataflow.flows import flow_of
from tests.dataflow.lmdb_files import change_values, sample, write_raw
from tests.dataflow.old_bytes import pack_of_2017
from tests.processes import in_thread, run_python


def saved(folder, count):
    path = str(folder / f"{count}.lmdb")
    LMDBSerializer.save(flow_of(sample(count)), path)
    return path


@pytest.fixture(scope="module")
def seven(tmp_path_factory):
    """A file of seven datapoints; not to be changed."""
    return saved(tmp_path_factory.mktemp("lmdb"), 7)


class SevenRecords(DataFlowContract):
    length = 7

    @pytest.fixture(autouse=True)
    def _file(self, seven):
        self.path = seven


class TestLMDBData(SevenRecords):
    def make_flow(self):
        return LMDBData(self.path, shuffle=False)


class TestLMDBDataDecoder(SevenRecords):
    length = 3
    has_len = "about"

    def make_flow(self):
        return LMDBDataDecoder(LMDBData(self.path, shuffle=False), odd)


class TestLMDBDataPoint(SevenRecords):
    def make_flow(self):
        return LMDBDataPoint(self.path, shuffle=False)


class TestLMDBDataPointOfAFlow(SevenRecords):
    def make_flow(self):
        return LMDBDataPoint(ProxyDataFlow(LMDBData(self.path, shuffle=False)))


def odd(key, value):
    return [key] if int(key) % 2 else None


def test_loaded_arrays_may_be_written_to(seven):
    for _, array in LMDBSerializer.load(seven):
        array[:] = 0
    assert_same(list(LMDBSerializer.load(seven, shuffle=False)), sample(7))


def test_an_order_of_its_own_for_each_pass(seven):
    flow = LMDBData(seven)
    passes = [[key for key, _ in flow] for _ in range(4)]
    assert len(set(map(tuple, passes))) > 1
    assert all(sorted(keys) == [b"%08d" % i for i in range(7)] for keys in passes)


def test_a_format_of_keys(tmp_path):
    items = [(b"image-%d" % i, b"%d" % i) for i in range(12)]
    path = write_raw(tmp_path / "file", [*items, (b"__keys__", b"not one of them")])
    flow = LMDBData(path, shuffle=False, keys="image-{}")
    assert len(flow) == 12
    assert [tuple(record) for record in flow] == items


def test_an_array_of_keys(seven):
    for keys in np.array(["00000005", "00000001"]), np.array([b"00000005", b"00000001"]):
        assert [key for key, _ in LMDBData(seven, False, keys)] == [b"00000005", b"00000001"]


def test_a_list_of_keys_of_which_some_are_not_there(seven):
    keys = [b"00000005", b"missing", b"gone", "00000001"]
    with pytest.raises(DamagedLMDB, match="key b'missing': There is no such key") as caught:
        list(LMDBData(seven, shuffle=False, keys=keys))
    assert (caught.value.path, caught.value.key) == (seven, b"missing")
    flow = LMDBData(seven, shuffle=False, keys=keys, max_errors=2)
    assert list(flow) == [[b"%08d" % i, dumps(sample(7)[i])] for i in (5, 1)]


def test_keys_that_are_not_those_of_the_file(seven):
    match = r"00000': There is no such key, which .* `keys` asks for.* keys such as b'00000000'\."
    for keys in "{:05d}", ["00000"]:
        with pytest.raises(DamagedLMDB, match=match):
            list(LMDBData(seven, shuffle=False, keys=keys))


def test_a_listed_key_that_is_not_there(tmp_path):
    keys = pack_of_2017([b"0", b"1"])
    path = write_raw(tmp_path / "file", [(b"0", b"value"), (b"__keys__", keys)])
    with pytest.raises(DamagedLMDB, match="key b'1': There is no such key, though the file itself"):
        list(LMDBData(path, shuffle=False))


@pytest.mark.parametrize("wrong", [b"key", 5, [1], {"a": 1}, "key", "{name}", "{"])
def test_keys_that_are_none(seven, wrong):
    error = ValueError if isinstance(wrong, str) else TypeError
    with pytest.raises(error, match="keys is a (list of bytes or text, or a )?format.*, but got"):
        LMDBData(seven, keys=wrong)


def test_the_number_of_entries_is_logged_once(seven, capsys):
    flow = LMDBData(seven)
    assert "Found" not in capsys.readouterr().out
    for _ in range(2):
        list(flow)
        flow.close()
    out = capsys.readouterr().out
    assert out.count(f"Found 7 entries in {seven}") == 1
    assert "WRN" not in out


@pytest.fixture
def damaged(tmp_path, capsys):
    """A file of eight datapoints; those of 2 and 5 are damaged."""
    path = saved(tmp_path, 8)
    value = bytearray(dumps(sample(8)[2]))
    value[-1] ^= 1
    change_values(path, {b"00000002": bytes(value), b"00000005": pickle.dumps(abs)})
    capsys.readouterr()
    return path


def test_a_damaged_record_is_an_error_that_names_it(damaged):
    flow = LMDBSerializer.load(damaged, shuffle=False)
    datapoints = iter(flow)
    next(datapoints), next(datapoints)
    with pytest.raises(DamagedLMDB, match="8.lmdb, key b'00000002': ") as caught:
        next(datapoints)
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == str(caught.value)
    assert (error.path, error.key) == (damaged, b"00000002")


def test_some_damaged_records_may_be_skipped(damaged, capsys):
    flow = LMDBSerializer.load(damaged, shuffle=False, max_errors=2)
    for _ in range(2):  # each pass counts for itself
        assert [number for number, _ in flow] == [0, 1, 3, 4, 6, 7]
        out = capsys.readouterr().out
        assert out.count("WRN") == 2
        assert "key b'00000002'" in out and "key b'00000005'" in out
    assert len(flow) == 8
    flow = LMDBSerializer.load(damaged, shuffle=False, max_errors=1)
    with pytest.raises(ValueError, match="b'00000005'.*max_errors=1"):
        list(flow)


def test_damaged_records_of_a_wrapped_flow(damaged, capsys):
    """Of `LMDBData` it is known that the file has no pickles; of another flow it is not."""
    flow = LMDBDataPoint(LMDBData(damaged, shuffle=False), max_errors=2)
    assert [number for number, _ in flow] == [0, 1, 3, 4, 6, 7]
    assert f"{damaged}, key b'00000005'" in capsys.readouterr().out
    flow = LMDBDataPoint(ProxyDataFlow(LMDBData(damaged, shuffle=False)), max_errors=1)
    with pytest.raises(ValueError, match="ProxyDataFlow, key b'00000005': It is a pickle"):
        list(flow)
    with pytest.raises(DamagedLMDB, match="ProxyDataFlow, key b'00000002'"):
        list(LMDBDataPoint(ProxyDataFlow(LMDBData(damaged, shuffle=False))))


def test_wrong_arguments(seven, tmp_path):
    with pytest.raises(TypeError, match="takes a flow, or what LMDBData takes, but not both"):
        LMDBDataPoint(LMDBData(seven), shuffle=False)
    with pytest.raises(TypeError, match="LMDBDataDecoder applies a function, but got int: 3"):
        LMDBDataDecoder(LMDBData(seven), 3)
    with pytest.raises(
        ValueError, match="write_frequency must be a whole number of at least 1, but got 0"
    ):
        dump_dataflow_to_lmdb(flow_of([[1]]), tmp_path / "new.lmdb", write_frequency=0)


@pytest.mark.parametrize(
    "header, error, reason",
    [
        (dumps({"version": 2, "codec": "frame", "count": 5}), ValueError, "Update tensorpack"),
        (dumps({"version": 1, "codec": "better", "count": 5}), ValueError, "Update tensorpack"),
        (dumps({"version": 1, "codec": "frame", "count": 6}), DamagedLMDB, "6 datapoints.*has 5"),
        (b"{}", DamagedLMDB, "b'__tensorpack__'"),
    ],
)
def test_what_the_file_says_about_itself(tmp_path, header, error, reason):
    path = saved(tmp_path, 5)
    change_values(path, {b"__tensorpack__": header})
    with pytest.raises(error, match=reason) as caught:
        list(LMDBSerializer.load(path))
    assert path in str(caught.value)


def test_without_a_header_the_list_of_keys_serves(tmp_path, capsys):
    path = saved(tmp_path, 5)
    change_values(path, {b"__tensorpack__": None})
    assert_same(list(LMDBSerializer.load(path, shuffle=False)), sample(5))
    assert "WRN" not in capsys.readouterr().out


def mapped(path):
    with open("/proc/self/maps") as maps:
        return path in maps.read()


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs /proc")
def test_the_last_flow_closes_the_file(tmp_path):
    path = saved(tmp_path, 9)
    assert not mapped(path)
    first, second = LMDBData(path), LMDBSerializer.load(path)
    assert not mapped(path)
    going = iter(first)
    next(going), next(iter(second))
    assert mapped(path)
    first.close()
    assert mapped(path), "the other one has it"
    second.close()
    assert not mapped(path)
    assert len(list(going)) == 8, "it is opened again"
    assert mapped(path)
    del first, going
    assert not mapped(path), "nobody has it any more"


def read_in_child(flow, connection):
    flow.reset_state()
    connection.send([len(list(flow)), len(list(flow)), flow.ds.lst.handle.pid == os.getpid()])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_it_is_opened_again_in_another_process(seven, method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip("not on this system")
    context = multiprocessing.get_context(method)
    flow = LMDBSerializer.load(seven)
    other = LMDBData(seven)
    going = iter(flow)
    next(going), next(iter(other))
    received, sent = context.Pipe(duplex=False)
    process = context.Process(target=read_in_child, args=(flow, sent))
    process.start()
    with ProcessGroup(process), received, sent:
        assert received.poll(60)
        assert received.recv() == [7, 7, True]
    assert len(list(going)) == 6
    assert len(list(other)) == 7


def test_threads_read_and_close_at_the_same_time(tmp_path):
    flow = LMDBSerializer.load(saved(tmp_path, 200))
    found = []

    def read():
        for _ in range(3):
            numbers = []
            for number, _ in flow:
                numbers.append(number)
                flow.close()
            found.append(sorted(numbers))

    readers = [in_thread(read) for _ in range(4)]
    for thread, errors in readers:
        thread.join()
        assert errors == []
    assert found == [list(range(200))] * 12


def test_decoder_drops_what_it_makes_none_of(seven):
    flow = LMDBDataDecoder(LMDBData(seven, shuffle=False), odd)
    assert list(flow) == [[b"00000001"], [b"00000003"], [b"00000005"]]
    assert len(flow) == 7


def test_missing_lmdb_is_said(seven, monkeypatch):
    monkeypatch.setitem(sys.modules, "lmdb", None)
    with pytest.raises(ImportError, match="pip install lmdb"):
        LMDBData(seven)
    with pytest.raises(ImportError, match="pip install lmdb"):
        dump_dataflow_to_lmdb(flow_of([]), "never made")


def test_a_file_may_be_open_at_the_end_of_the_program(seven):
    code = f"""
from tensorpack.dataflow.files.lmdb_file import LMDBData
flow = LMDBData({seven!r})
going = iter(flow)
print(len(next(going)))
"""
    done = run_python("-X", "dev", "-c", code)
    assert (done.returncode, done.stderr) == (0, b"")
