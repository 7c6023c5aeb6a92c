"""What parts that run without TensorFlow do with it; apart, so that their other tests load none."""

import gc
import threading
import weakref

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import TFRecordSerializer
from tensorpack.utils import naming
from tensorpack.utils.argtools import graph_memoized
from tensorpack.utils.concurrency import ShareSessionThread
from tests.dataflow.test_tfrecord import TFRecordBytes, datapoints_of, record
from tests.utils.test_concurrency import run_to_end


def test_graph_memoized_computes_once_for_each_graph_and_value():
    calls = []

    @graph_memoized
    def function(name, scale=1):
        calls.append((name, scale))

    for _ in range(2):
        assert function("a") is function("a", scale=2) is None
    with tf.Graph().as_default() as graph:
        function("a")
    assert calls == [("a", 1), ("a", 2), ("a", 1)]
    gone = weakref.ref(graph)
    del graph
    gc.collect()
    assert gone() is None


def test_collections_are_those_of_tensorflow():
    keys = tf.GraphKeys
    assert naming.SUMMARY_BACKUP_KEYS == [keys.SUMMARIES, "MOVING_SUMMARY_OPS"]
    assert naming.TOWER_FREEZE_KEYS == [*naming.SUMMARY_BACKUP_KEYS, keys.UPDATE_OPS]


class Reader(ShareSessionThread):
    def run(self):
        with self.default_sess() as session:
            self.seen = session


def test_session_and_graph_where_it_is_started_are_the_defaults_in_the_thread():
    seen = []

    def look():
        seen.append((tf.get_default_session(), tf.get_default_graph()))

    derived, outer = Reader(), ShareSessionThread(threading.Thread(target=look))
    with tf.Session(graph=tf.Graph()) as session:
        run_to_end(outer)
        run_to_end(derived)
    assert seen == [(session, session.graph)] and derived.seen is session


def test_tensorflow_reads_our_file_and_writes_one_that_is_equal_to_ours(tmp_path):
    path = str(tmp_path / "ours.tfrecord")
    TFRecordSerializer.save(datapoints_of(4), path)
    assert list(tf.io.tf_record_iterator(path)) == [data for (data,) in TFRecordBytes(path)]
    records = [b"", b"one", np.random.RandomState(0).bytes(3000)]
    path = tmp_path / "a.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for data in records:
            writer.write(data)
    assert [data for (data,) in TFRecordBytes(str(path))] == records
    assert path.read_bytes() == b"".join(map(record, records))
