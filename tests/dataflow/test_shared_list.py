"""Tests of `tensorpack.dataflow.shared_list`."""

import gc
import multiprocessing
import os
import pickle
import threading

import numpy as np
import pytest

from tensorpack.dataflow import DataFromList
from tensorpack.dataflow.shared_list import SharedList
from tests.contracts.dataflow import DataFlowContract, assert_same
from tests.dataflow import process_functions as functions

ELEMENTS = [
    {"name": f"number {i}", "image": np.full((i + 1, 40, 30), i, np.uint8), "boxes": (i, None)}
    for i in range(6)
]


class TestSharedListAsASource(DataFlowContract):
    length = 6

    def make_flow(self):
        return DataFromList(SharedList(ELEMENTS), shuffle=False)


def test_it_is_a_sequence_of_equal_elements():
    shared = SharedList(iter(ELEMENTS))
    assert len(shared) == 6
    assert_same(list(shared), ELEMENTS)
    assert_same(shared[-1], ELEMENTS[-1])
    assert_same(shared[1:4], ELEMENTS[1:4])
    assert shared.nbytes >= sum(each["image"].nbytes for each in ELEMENTS)
    for index in 6, -7:
        with pytest.raises(IndexError):
            shared[index]
    empty = SharedList([])
    assert len(empty) == 0 and list(empty) == [] and empty.nbytes == 0


def test_arrays_are_read_only_views_that_outlive_the_list():
    shared = SharedList(ELEMENTS)
    image = shared[5]["image"]
    assert not image.flags.writeable and image.ctypes.data % 64 == 0
    assert np.shares_memory(image, shared[5]["image"])
    del shared
    np.testing.assert_array_equal(image, ELEMENTS[5]["image"])


def test_what_cannot_be_stored_is_named():
    with pytest.raises(TypeError, match=r"Element 1 of the list: \['image'\]: a lock"):
        SharedList([{"image": 1}, {"image": threading.Lock()}])


def test_pickled_it_takes_its_elements_along():
    assert SharedList([functions.Pair(1, {2})])[0] == functions.Pair(1, {2})
    assert_same(list(pickle.loads(pickle.dumps(SharedList(ELEMENTS)))), ELEMENTS)


def _report(shared, connection):
    connection.send_bytes(shared[3]["image"].tobytes())
    connection.send_bytes(os.readlink(f"/proc/self/fd/{shared._file.fd}").encode())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_process_reads_the_same_memory(method):
    context = multiprocessing.get_context(method)
    shared = SharedList(ELEMENTS)
    inode = os.fstat(shared._file.fd).st_ino
    here, there = context.Pipe()
    process = context.Process(target=_report, args=(shared, there))
    process.start()
    there.close()
    assert here.recv_bytes() == ELEMENTS[3]["image"].tobytes()
    name = here.recv_bytes().decode()
    process.join()
    here.close()
    assert process.exitcode == 0 and inode and "deleted" in name


def test_its_descriptor_is_closed_with_it():
    before = len(os.listdir("/proc/self/fd"))
    lists = [SharedList([np.zeros(9)]) for _ in range(5)]
    arrays = [each[0] for each in lists]
    del lists
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before + 1  # the one that reads this directory
    assert not np.any(arrays)
