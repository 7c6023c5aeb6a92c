"""Runs with hooks give what plain runs give, and the hooks see what they asked for."""

import itertools

import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.dependency import dependency_of_fetches
from tensorpack.tfutils.hooked_session import CheckedFeed, HookedSession


class Hook(tf.train.SessionRunHook):
    stop = False

    def __init__(self, args=None):
        self.args, self.seen = args, []

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

    def make(*hooks, **options):
        sessions.append(HookedSession(tf.Session(), hooks, **options))
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


def test_feeds_of_caller_and_hooks_meet(session):
    x, y = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32, [])
    out = x * tf.cast(y, tf.float32)
    sess = session(Hook(tf.train.SessionRunArgs(None, {y: 3})))
    for value in ([1, 2], np.array([1.0, 2.0])):  # the second time through the prepared call
        np.testing.assert_array_equal(sess.run(out, {x: value}), [3, 6])


def test_a_feed_that_was_checked_is_not_checked_again(session):
    x, wrong = tf.placeholder(tf.float32, [2]), np.float64([1, 2])
    request = tf.train.SessionRunArgs(None, {x: wrong})
    assert session(Hook(request)).run(x + 1).tolist() == [2, 3]
    with pytest.raises(tf.errors.InvalidArgumentError):
        session(Hook(request._replace(feed_dict=CheckedFeed({x: wrong})))).run(x + 1)


def test_a_checked_feed_may_have_other_arrays_in_the_next_run(session):
    x, feed = tf.placeholder(tf.float32, []), CheckedFeed()
    hook = Hook(tf.train.SessionRunArgs(x, feed))
    sess, out, more = session(hook), x + 1, x + 2
    for fetches in (out, out, more, out):
        feed[x] = np.float32(len(hook.seen))
        assert sess.run(fetches) == len(hook.seen[:-1]) + (2 if fetches is more else 1)
    assert hook.seen == [0, 1, 2, 3]


def test_what_session_run_takes_as_a_feed_is_taken(session):
    sparse, learning = tf.sparse_placeholder(tf.float32), tf.placeholder(tf.bool, [])
    total = tf.sparse_reduce_sum(sparse) * tf.cast(learning, tf.float32)
    values = tf.SparseTensorValue([[0, 1]], [3.0], [2, 2])
    hook = Hook(tf.train.SessionRunArgs(total, {learning: 1}))  # as Keras gives its learning phase
    assert session(hook).run(total + 1, {sparse: values}) == 4
    assert hook.seen == [3]
    assert session(Hook(tf.train.SessionRunArgs(learning, {learning: 0}))).run(learning) == False  # noqa: E712


def test_two_feeds_of_one_tensor_are_refused(session):
    x = tf.placeholder(tf.float32, [])
    sess = session(Hook(tf.train.SessionRunArgs(None, {x: 1.0})))
    with pytest.raises(RuntimeError, match="Two parts of this run feed"):
        sess.run(x, {x: 2.0})


def test_stop_and_close(session):
    hook, a = Hook(), tf.constant(0)
    sess = session(hook)
    sess.run(a)
    assert not sess.should_stop()
    hook.stop = True
    sess.run(a)  # a prepared run
    assert sess.should_stop()
    sess.close()
    sess.close()
    for run in (sess.run, sess.run_unseen):
        with pytest.raises(RuntimeError, match="has been closed"):
            run(a)


def test_a_hook_may_ask_for_something_else_each_time(session):
    a, b = tf.constant(1), tf.constant(2)
    asked = [tf.train.SessionRunArgs(each) for each in (a, b, None, [a, b])]
    hook, turns = Hook(), iter([asked[i] for i in (0, 1, 0, 2, 3, 1)] + [None])
    hook.before_run = lambda ctx: next(turns)
    sess = session(hook)
    for _ in range(7):
        assert sess.run(a) == 1
    assert hook.seen == [1, 2, 1, None, [1, 2], 2, None]


def test_what_can_change_inside_the_same_request_is_looked_at_each_time(session):
    a, b = tf.constant(1), tf.placeholder_with_default(2, [])
    fetches, feeds = [a], {}
    hook = Hook(tf.train.SessionRunArgs(fetches, feeds))
    sess = session(hook)
    for _ in range(2):
        assert sess.run(fetches) == [1]
    fetches[0] = b
    assert sess.run(fetches) == [2]
    feeds[b] = 5
    sess.run(a)
    assert hook.seen == [[1], [1], [2], [5]]

    fixed = Hook(tf.train.SessionRunArgs(b, feeds))
    del feeds[b]
    sess = session(fixed)
    sess.run(a)
    feeds[b] = 7
    sess.run(a)
    assert fixed.seen == [2, 7]


@pytest.mark.parametrize("checked", [None, {"data:0": np.float32(0)}])
def test_a_feed_that_was_empty_before_is_fed(session, checked):
    x, _ = tf.placeholder_with_default(1.0, []), tf.placeholder(tf.float32, [], "data")
    feed, more = {}, checked and CheckedFeed(checked)
    sess = session(Hook(tf.train.SessionRunArgs(None, more)))
    assert [sess.run(x, feed), sess.run(x, feed)] == [1, 1]
    feed[x] = 2.0
    assert sess.run(x, feed) == 2


def test_requests_made_again_each_time_do_not_pile_up(session):
    # Were they not kept, the next one would have the id of the last one, and be taken for it.
    a, b = tf.constant(1), tf.constant(2)
    hook, fetches = Hook(), itertools.cycle([a, b])
    hook.before_run = lambda ctx: tf.train.SessionRunArgs(next(fetches))
    sess = session(hook)
    for _ in range(100):
        sess.run(a)
    assert hook.seen == [1, 2] * 50
    assert len(sess._plans) == 2


def test_hooks_are_called_in_their_order_with_one_context_for_each_run(session):
    tape = []

    class OnlyAfter(tf.train.SessionRunHook):
        def __init__(self, name):
            self.name = name

        def after_run(self, ctx, values):
            tape.append((self.name, "after", ctx, ctx.original_args, values))

    class Notes(OnlyAfter):
        def before_run(self, ctx):
            tape.append((self.name, "before", ctx, ctx.original_args, ctx.session))

    a = tf.constant(1)
    both = Notes("both")
    sess = session(both, OnlyAfter("only"), Notes("last"), both)
    for _ in range(2):
        sess.run(a)
    first, second = tape[:7], tape[7:]
    for run in (first, second):
        assert [each[:2] for each in run] == [
            *[("both", "before"), ("last", "before"), ("both", "before")],
            *[("both", "after"), ("only", "after"), ("last", "after"), ("both", "after")],
        ]
        assert len({id(each[2]) for each in run}) == 1
        assert all(each[3].fetches is a and each[3].feed_dict is None for each in run)
        assert all(each[4] is sess.session for each in run[:3])
        assert all(each[4] == (None, None, None) for each in run[3:])
    assert first[0][2] is not second[0][2]


def test_the_results_are_those_of_each_hook_alone_also_with_options(session):
    a, b, c = tf.constant(1), tf.constant(2), tf.constant(3)
    hooks = [Hook(tf.train.SessionRunArgs(b)), Hook(), Hook(tf.train.SessionRunArgs([c]))]
    sess = session(*hooks)
    metadata = tf.RunMetadata()
    assert sess.run(a, options=tf.RunOptions(trace_level=3), run_metadata=metadata) == 1
    assert sess.run(a) == 1
    assert [hook.seen for hook in hooks] == [[2, 2], [None, None], [[3], [3]]]
    assert len(metadata.step_stats.dev_stats) > 0


@pytest.fixture
def counted(session):
    """A session, a, b, and what counts the runs that compute b; the hook, and how often it asks."""
    a, b = tf.constant(1), tf.constant(2)
    counter = tf.get_variable("counter", initializer=0)
    hook, count, asked = Hook(), counter.assign_add(1).op, []

    def along(sess, fetches):
        asked.append(fetches)
        return [count] if dependency_of_fetches(fetches, b) else []

    sess = session(hook, run_along=along)
    sess.session.run(counter.initializer)
    return sess, a, b, counter, hook, asked


@pytest.mark.parametrize("options", [None, tf.RunOptions()])
def test_what_runs_along_goes_by_all_that_is_asked_for(counted, options):
    sess, a, b, counter, asking, asked = counted
    assert [sess.run(a, options=options) for _ in range(2)] == [1, 1]
    assert sess.session.run(counter) == 0
    assert [sess.run([a, b], options=options) for _ in range(2)] == [[1, 2]] * 2
    assert sess.session.run(counter) == 2
    asking.args = tf.train.SessionRunArgs({"b": b})
    assert [sess.run(a, options=options) for _ in range(2)] == [1, 1]
    assert sess.session.run(counter) == 4
    assert asking.seen == [None] * 4 + [{"b": 2}] * 2
    assert len(asked) == (3 if options is None else 6)  # once for each kind of prepared run


def test_a_run_that_no_hook_sees(counted):
    sess, a, b, counter, asking, _ = counted
    assert sess.run_unseen({"a": a, "both": [a, b]}) == {"a": 1, "both": [1, 2]}
    assert sess.session.run(counter) == 1
    assert sess.run_unseen(a) == 1
    assert sess.session.run(counter) == 1
    assert asking.seen == []
