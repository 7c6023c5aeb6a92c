"""A worker among the others, before the first step: whom it joins, and whom it waits for."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest

from tensorpack.compat import tfv1 as tf
from tensorpack.launch import _hosts
from tensorpack.train.group import peers
from tensorpack.train.group.workers import Workers
from tests.callbacks.driver import log_lines
from tests.processes import wait_until


def both(*functions):
    """Calls each on a thread of its own; returns the results, or errors."""
    results = [None] * len(functions)

    def run(index, function):
        try:
            results[index] = function()
        except Exception as error:
            results[index] = error

    threads = [threading.Thread(target=run, args=each) for each in enumerate(functions)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    return results


@pytest.fixture
def make_group():
    made = []

    def make(cluster, on_failure=lambda error: None, timeout=5.0):
        group = Workers(cluster, timeout, on_failure, lambda flags: None)
        made.append(group)
        return group

    yield make
    for each in made:
        each.close()


def join(group):
    return lambda: group.join(None, lambda: None)


def test_a_call_that_a_starting_server_loses_is_made_again(make_group):
    cluster = _hosts.on_this_machine(2, 0)[0]
    number, over, answered = itertools.count(), threading.Event(), []

    def answer(request, context):
        call = next(number)
        if call == 0:
            over.wait(30)
        answered.append(call)
        return b"/job:worker/replica:0/task:1/device:CPU:0"

    handler = grpc.unary_unary_rpc_method_handler(answer)
    service = grpc.method_handlers_generic_handler(
        "tensorflow.WorkerService", {"GetStatus": handler}
    )
    with ThreadPoolExecutor(2) as threads:
        server = grpc.server(threads, [service])
        assert server.add_insecure_port(cluster.workers[1])
        server.start()
        try:
            make_group(cluster, timeout=300.0).join(None, lambda: None)
            assert answered[0] == 1
        finally:
            over.set()
            server.stop(0).wait()


def test_the_log_says_for_whom_a_worker_waits(make_group, monkeypatch, capsys):
    monkeypatch.setattr(peers, "_REPORT_SECONDS", 0.2)
    clusters = _hosts.on_this_machine(2, 0)
    zero, one = [make_group(each) for each in clusters]
    assert both(join(zero), join(one)) == [None, None]
    said = []

    def has_said():
        said.extend(log_lines(capsys))
        return f"Waiting for worker 1 at {clusters[1].address} ..." in said

    def come_late():
        wait_until(has_said, 30)
        return one.gather([2.0], 5, lambda: None)

    tables = both(lambda: zero.gather([1.0], 5, lambda: None), come_late)
    np.testing.assert_array_equal(tables, [[[1.0], [2.0]]] * 2)


def test_an_op_that_fails_ends_the_group_once(make_group, monkeypatch):
    monkeypatch.setattr(peers, "_EXPLAIN_SECONDS", 0.0)
    told = []
    group = make_group(_hosts.on_this_machine(2, 0)[0], told.append)
    with tf.Graph().as_default() as graph:
        op = tf.debugging.Assert(False, ["broken op"])
    for _ in range(2):
        with pytest.raises(RuntimeError, match="(?s)and all of them answer: .*broken op") as raised:
            group.run_apart(graph, op, lambda: None)
        assert told == [raised.value] == [group.lost]
    assert isinstance(raised.value.__cause__, tf.errors.InvalidArgumentError)
