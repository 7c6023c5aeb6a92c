"""A file is looked at before its records are read, once for as long as it stays the same."""

import os
import pickle

import pytest

from tensorpack.dataflow._lmdb import records
from tensorpack.dataflow.lmdb import LMDBData
from tests.dataflow.lmdb_files import COUNT

pytestmark = pytest.mark.fault_row(32)


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
