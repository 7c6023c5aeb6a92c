"""LMDB files are read by flows that shuffle, skip, share and close them as they say."""

import multiprocessing
import os

import numpy as np
import pytest

from tensorpack.dataflow import ProxyDataFlow
from tensorpack.dataflow.files.lmdb_file import (
    LMDBData,
    LMDBDataDecoder,
    LMDBDataPoint,
    LMDBSerializer,
)
from tensorpack.utils.workers.processes import ProcessGroup
from tests.contracts.dataflow import DataFlowContract
from tests.dataflow.flows import flow_of
from tests.dataflow.lmdb_files import sample, write_raw
from tests.processes import in_thread


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


@pytest.mark.parametrize(
    "keys",
    [
        ["00000005", b"00000001"],
        np.array(["00000005", "00000001"]),
        np.array([b"00000005", b"00000001"]),
    ],
)
def test_a_list_of_keys(seven, keys):
    assert [key for key, _ in LMDBData(seven, False, keys)] == [b"00000005", b"00000001"]


def test_a_format_of_keys(tmp_path):
    items = [(b"image-%d" % i, b"%d" % i) for i in range(12)]
    path = write_raw(tmp_path / "file", [*items, (b"__keys__", b"not one of them")])
    flow = LMDBData(path, shuffle=False, keys="image-{}")
    assert len(flow) == 12
    assert [tuple(record) for record in flow] == items


@pytest.mark.parametrize(
    "items",
    [
        [(b"%d" % number, b"x" * (number % 3000)) for number in range(3000)],
        [(b"k" * 511, b"x" * 2**20), (b"l" * 511, b"y" * 4079), (b"m", b"z" * 4080)],
    ],
    ids=["small", "large"],
)
def test_files_of_other_programs(tmp_path, capsys, items):
    path = write_raw(tmp_path / "file", items)
    assert [tuple(record) for record in LMDBData(path, shuffle=False)] == sorted(items)
    message = f"{path} has no list of keys that can be read: all its keys are read"
    assert message in capsys.readouterr().out


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
    assert not mapped(path), "the last flow is gone"


def read_in_child(flow, connection):
    flow.reset_state()
    connection.send([len(list(flow)), len(list(flow))])


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
        assert received.recv() == [7, 7]
    assert len(list(going)) == 6
    assert len(list(other)) == 7


def test_threads_read_and_close_at_the_same_time(tmp_path):
    flow = LMDBSerializer.load(saved(tmp_path, 200))
    passes = []

    def read():
        for _ in range(3):
            numbers = []
            for number, _ in flow:
                numbers.append(number)
                flow.close()
            passes.append(sorted(numbers))

    readers = [in_thread(read) for _ in range(4)]
    for thread, errors in readers:
        thread.join()
        assert errors == []
    assert passes == [list(range(200))] * 12
