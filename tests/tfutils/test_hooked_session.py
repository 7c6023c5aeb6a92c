"""Runs with hooks give what plain runs give, and the hooks see what they asked for."""

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.hooked_session import HookedSession


class Hook(tf.train.SessionRunHook):
    def __init__(self, args=None, stop=False):
        self.args, self.stop, self.seen = args, stop, []

    def before_run(self, ctx):
        self.original = ctx.original_args
        return self.args

    def after_run(self, ctx, values):
        self.seen.append(values.results)
        if self.stop:
            ctx.request_stop()


@pytest.fixture
def session():
    sessions = []

    def make(*hooks):
        sessions.append(HookedSession(tf.Session(), hooks))
        return sessions[-1]

    yield make
    for each in sessions:
        each.close()


def test_returns_only_what_the_caller_fetched(session):
    a, b = tf.constant(1), tf.constant(2)
    hook = Hook(tf.train.SessionRunArgs({"b": b, "both": [a, b]}))
    sess = session(hook, Hook())
    assert sess.run([a]) == [1]
    assert sess.run({"x": (a, b)}) == {"x": (1, 2)}
    assert hook.seen == [{"b": 2, "both": [1, 2]}] * 2
    assert hook.original.fetches == {"x": (a, b)}


def test_hooks_run_even_if_the_caller_fetches_nothing(session):
    counter = tf.get_variable("counter", [], initializer=tf.zeros_initializer())
    hook = Hook(tf.train.SessionRunArgs(counter.assign_add(1)))
    sess = session(hook)
    sess.session.run(counter.initializer)
    sess.run([])
    assert sess.session.run(counter) == 1


def test_feeds_of_caller_and_hooks_meet(session):
    x, y = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32, [])
    out = x * tf.cast(y, tf.float32)
    sess = session(Hook(tf.train.SessionRunArgs(None, {y: 3})))
    for value in ([1, 2], np.array([1.0, 2.0])):  # the second time through the prepared call
        np.testing.assert_array_equal(sess.run(out, {x: value}), [3, 6])


def test_two_feeds_of_one_tensor_are_refused(session):
    x = tf.placeholder(tf.float32, [])
    sess = session(Hook(tf.train.SessionRunArgs(None, {x: 1.0})))
    with pytest.raises(RuntimeError, match="Two parts of this run feed"):
        sess.run(x, {x: 2.0})


def test_a_changed_list_of_fetches_is_noticed(session):
    a, b = tf.constant(1), tf.constant(2)
    fetches = [a]
    sess = session()
    assert sess.run(fetches) == [1]
    fetches[0] = b
    assert sess.run(fetches) == [2]


def test_prepares_each_set_of_fetches_once(session):
    a = tf.constant(1)
    sess = session()
    for _ in range(3):
        sess.run([a])
    assert len(sess._plans) == 1


def test_options_reach_the_run(session):
    a = tf.constant(1) + 1
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    hook = Hook(tf.train.SessionRunArgs(None, None, options))
    hook.after_run = lambda ctx, values: hook.seen.append(values.run_metadata)
    assert session(hook).run(a) == 2
    assert len(hook.seen[0].step_stats.dev_stats) > 0


def test_stop_and_close(session):
    sess = session(Hook(stop=True))
    assert not sess.should_stop()
    sess.run(tf.constant(0))
    assert sess.should_stop()
    sess.close()
    sess.close()
    with pytest.raises(RuntimeError, match="has been closed"):
        sess.run([])
