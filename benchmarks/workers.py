"""R13: what the coordination of workers costs."""

import time

import numpy as np
from _contest import Contest
from _programs import LIMIT, begin, returned

from tensorpack.launch import _hosts
from tensorpack.utils.cluster import Cluster

TENSOR = 1000000  # floats


def all_reduce(pairs=3, kilobytes=(1, 1000, 100000)):
    """The exchange of a `CollectiveTrainer` against a bare `CollectiveReduce` graph, by size.

    Two processes on this machine, over loopback. Gradients of so many kB, in tensors of at most 4
    MB, are averaged: "ours" by the `Exchange` of the trainer, which packs and unpacks them; "bare"
    by one `CollectiveReduce` of that size. They take turns, and the quickest of the rounds counts,
    since what else runs only makes it slower.
    """
    workers = list(_hosts.on_this_machine(2, 0)[0].workers)
    commands = [[work, workers, index, kilobytes, pairs] for index in range(2)]
    for size, best in zip(kilobytes, returned(_together(commands))):
        yield Contest(
            f"all-reduce of {size:,} kB, 2 processes / bare",
            {name: [rate] for name, rate in best.items()},
            unit="/s",
            target=">= 0.9",
        )


def _together(commands):
    """Runs processes at the same time; returns what the first prints."""
    with begin(commands[0]) as first, begin(commands[1]) as second:
        try:
            return first.communicate(timeout=LIMIT)[0]
        finally:
            first.kill()
            second.kill()


def work(workers, index, sizes, rounds):
    """One of the processes; returns the rates of both sides, for each size."""
    from tensorpack.compat import tfv1 as tf
    from tensorpack.train.group.trainer import make_server, worker_config

    cluster, found = Cluster(tuple(workers), index=index), []
    config, target = worker_config(cluster), make_server(cluster).target
    for number, kilobytes in enumerate(sizes):
        with tf.Graph().as_default() as graph:
            session = tf.Session(target, graph=graph, config=config)
            ops = build(tf, index, kilobytes, first_key=10000 * number + 1)
            session.run(tf.global_variables_initializer())
            steps = int(np.clip(200000 // kilobytes, 5, 300))
            found.append(measure(session, ops, steps, rounds))
    time.sleep(2)  # the other one may still be reading
    return found


def build(tf, index, kilobytes, first_key):
    """The ops of our step and of a bare one."""
    from tensorpack.train.group.collective import Exchange, all_reduce

    floats, start = kilobytes * 250, tf.ones_initializer()
    shapes = [TENSOR] * (floats // TENSOR) + [floats % TENSOR] * (floats % TENSOR > 0)
    # TensorFlow 1.15 shares variables of one name between the sessions of a server.
    with tf.device("/device:CPU:0"), tf.variable_scope(f"from{first_key}"):
        variables = [tf.get_variable(f"v{i}", [n], initializer=start) for i, n in enumerate(shapes)]
        whole = tf.get_variable("whole", [floats], initializer=start)
        exchange, flags = Exchange(2, first_key=first_key), tf.one_hot(index, 2)
        pairs = exchange.reduce([(each.read_value(), each) for each in variables], flags)
        ours = tf.group(exchange.flags, *[gradient.op for gradient, _ in pairs])
        bare = all_reduce(whole.read_value(), 2, first_key + 9000, average=True).op
    return {"ours": ours, "bare CollectiveReduce": bare}


def measure(session, ops, steps, rounds):
    """Calls of each op per second, in the quickest of the rounds."""
    calls = {name: session.make_callable(op) for name, op in ops.items()}
    best = dict.fromkeys(calls, 0.0)
    for _ in range(rounds):
        for name, call in calls.items():
            for _ in range(3):
                call()
            start = time.perf_counter()
            for _ in range(steps):
                call()
            best[name] = max(best[name], steps / (time.perf_counter() - start))
    return best
