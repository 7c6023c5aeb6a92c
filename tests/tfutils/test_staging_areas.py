"""Who waits for an element of a staging area comes out, with an error and without an element."""

import threading

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.staging_areas import (
    StagingControl,
    StagingWatch,
    all_staging_areas,
    is_woken,
)


def area(count=1, **options):
    """Returns the op that puts values into a new area, and those that it takes out."""
    values = [tf.constant(float(i)) for i in range(count)]
    name = tf.get_default_graph().unique_name("area")
    put = tf.raw_ops.Stage(values=values, shared_name=name, **options)
    dtypes = [tf.float32] * count
    return put, tf.raw_ops.Unstage(dtypes=dtypes, shared_name=name, **options)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("waiting", [1, 3])
def test_all_who_wait_come_out(count, waiting):
    _, taken = area(count)
    control = StagingControl(taken[0].op)
    errors = []
    # As many threads as wait, so that none is left to wake them.
    config = tf.ConfigProto(inter_op_parallelism_threads=waiting, use_per_session_threads=True)
    with tf.Session(config=config) as sess:

        def wait():
            try:
                sess.run(taken)
            except tf.errors.InvalidArgumentError as error:
                errors.append(error)

        threads = [threading.Thread(target=wait) for _ in range(waiting)]
        for each in threads:
            each.start()
        control.wake(sess)
        for each in threads:
            each.join()
    assert len(errors) == waiting and all(is_woken(each) for each in errors)


def test_what_is_there_is_taken_first():
    put, taken = area(2)
    control = StagingControl(taken[0].op)
    with tf.Session() as sess:
        sess.run(put)
        control.wake(sess)
        assert sess.run(taken) == [0.0, 1.0]
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            sess.run(taken)
        assert is_woken(caught.value)


def test_an_area_that_stays_empty_is_woken_and_another_one_left_alone():
    put, used = area()
    _, empty = area()
    watch = StagingWatch(all_staging_areas(tf.get_default_graph()))
    config = tf.ConfigProto(inter_op_parallelism_threads=1, use_per_session_threads=True)
    with tf.Session(config=config) as sess:
        sess.run(put)
        watch.start(sess)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Mismatch stage/unstage"):
            sess.run(empty)
        watch.stop()
        assert sess.run(used) == [0.0]
        assert watch._areas[0].is_empty(sess)


def test_a_watch_that_was_stopped_does_not_begin():
    area()
    watch = StagingWatch(all_staging_areas(tf.get_default_graph()))
    watch.stop()
    with tf.Session() as sess:
        watch.start(sess)
        watch.stop()
        StagingWatch([]).start(sess)
    assert "StagingWatch" not in [each.name for each in threading.enumerate()]


def test_other_errors_are_not_of_it():
    assert not is_woken(tf.errors.InvalidArgumentError(None, None, "no such shape"))
    assert not is_woken(RuntimeError("Mismatch stage/unstage"))


def test_areas_of_a_graph_are_found_and_those_with_limits_left_alone():
    graph = tf.get_default_graph()
    assert all_staging_areas(graph) == [] and graph.get_operations() == []
    area(capacity=1)
    area(memory_limit=1000)
    assert all_staging_areas(graph) == []
    with tf.device("/gpu:1"):
        _, (taken,) = area()
    (control,) = all_staging_areas(graph)
    assert control._wake.device == taken.device == "/device:GPU:1"
    assert control._wake.get_attr("shared_name") == taken.op.get_attr("shared_name")
    assert control._wake.inputs[0].device == "/device:CPU:0"
