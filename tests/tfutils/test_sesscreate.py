"""Tests of session creators."""

import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils import NewSessionCreator, ReuseSessionCreator, SessionCreatorAdapter
from tensorpack.tfutils.devices import tower_device


def test_new_session_has_all_variables_and_tables_initialised(log_lines):
    a = tf.get_variable("a", initializer=2.0)
    local = tf.get_variable(
        "local", initializer=a.read_value() * 2, collections=["local_variables"]
    )
    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(["x"], [5], tf.string, tf.int32), -1
    )
    found = table.lookup(tf.constant(["x"]))
    with NewSessionCreator().create_session() as session:
        assert [v.tolist() for v in session.run([a, local, found])] == [2.0, 4.0, [5]]
    assert log_lines == [("info", "Global variables initialized.")]


def test_new_session_takes_the_graph_and_config_it_is_given():
    graph = tf.Graph()
    with graph.as_default():
        v = tf.get_variable("v", initializer=1.0)
        with tf.device(tower_device(0)):  # as towers do, also where there is no GPU
            v = tf.identity(v)
    config = tf.ConfigProto(inter_op_parallelism_threads=3)
    creator = NewSessionCreator(graph=graph, config=config)
    assert creator.config is config
    with creator.create_session() as session:
        assert session.graph is graph
        assert session.run(v) == 1.0
    assert NewSessionCreator().config.allow_soft_placement


def test_failed_initialiser_is_the_error():
    tf.get_variable("v", initializer=tf.check_numerics(tf.constant(float("nan")), "no number"))
    with pytest.raises(tf.errors.InvalidArgumentError, match="no number"):
        NewSessionCreator().create_session()


def test_initialiser_that_waits_for_data_is_warned_of(log_lines):
    queue = tf.FIFOQueue(1, [tf.float32], [[]], name="input_queue")
    fill = queue.enqueue([3.0])
    with tf.control_dependencies([fill]):
        initial = queue.dequeue()
    v = tf.get_variable("v", initializer=initial)
    with NewSessionCreator().create_session() as session:
        assert session.run(v) == 3.0
    assert [text for level, text in log_lines if level == "warn"] == [
        "The initial value of v waits for input_queue_Dequeue, which has no data before training "
        "starts: this may wait for ever."
    ]


def test_other_creators_pass_sessions_on():
    with tf.Session() as session:
        reuse = ReuseSessionCreator(session)
        assert reuse.create_session() is session
        adapter = SessionCreatorAdapter(reuse, lambda sess: [sess])
        assert adapter.create_session() == [session]


def test_the_second_argument_is_a_graph_or_the_config_of_later_scripts():
    config, graph = tf.ConfigProto(intra_op_parallelism_threads=1), tf.Graph()
    later, earlier = NewSessionCreator("", config), NewSessionCreator("", graph, config)
    assert (later.graph, later.config) == (None, config)
    assert (earlier.graph, earlier.config) == (graph, config)
