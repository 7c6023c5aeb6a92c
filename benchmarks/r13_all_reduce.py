"""R13: the exchange of a CollectiveTrainer against a bare `CollectiveReduce` graph, by size.

    python benchmarks/r13_all_reduce.py [--kilobytes 1,100,1000,10000,100000] [--rounds 3]

Two processes on this machine, over loopback. Gradients of so many kB, in tensors of at most 4 MB,
are averaged: "ours" by the `Exchange` of the trainer, which packs them, sends them through the
queues, and unpacks them; "bare" by one `CollectiveReduce` of that size in the session of the step.
They take turns, and the quickest of the rounds counts, since what else runs only makes it slower.
The result is bare / ours. With the environment of the peer "torch" (`make bench-peers`), gloo's
`all_reduce` is timed, too.
"""

import argparse
import json
import subprocess
import sys
import threading
import time

import numpy as np
from _programs import HERE, peer_python
from _report import Measured, report, say

from tensorpack.compat import tfv1 as tf
from tensorpack.launch import _hosts
from tensorpack.train.group.exchange import Exchange, all_reduce
from tensorpack.train.group.server import make_server, worker_config
from tensorpack.utils.cluster import Cluster

LINE = "{:>10} kB {:9.3f} {:9.3f} {:9.2f} {:>9}"
HEAD = "         size   bare ms   ours ms  bare/ours   gloo ms"
TENSOR = 1000000  # floats


def main():
    """Starts both processes, and reports what the first has measured."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kilobytes", default="1,100,1000,10000,100000")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", help="internal")
    args = parser.parse_args()
    sizes = [int(each) for each in args.kilobytes.split(",")]
    if args.worker:
        work(Cluster(**json.loads(args.worker)), sizes, args.rounds)
        return
    clusters = _hosts.on_this_machine(2, 0)
    found = json.loads(_together([_command(sys.argv, each) for each in clusters])[-1])
    gloo = _gloo(sizes, args.rounds)
    say(HEAD)
    for kilobytes, bare, ours in found:
        told = f"{gloo[kilobytes]:.3f}" if kilobytes in gloo else "-"
        say(LINE.format(kilobytes, bare, ours, bare / ours, told))
    report(
        *[
            Measured(
                "R13",
                f"all-reduce of {kilobytes} kB, 2 processes / bare",
                bare / ours,
                target=">= 0.9",
                peer=f"bare CollectiveReduce: {bare:.2f} ms, ours {ours:.2f} ms"
                + (f", gloo {gloo[kilobytes]:.2f} ms" if kilobytes in gloo else ""),
            )
            for kilobytes, bare, ours in found
        ]
    )


def _command(argv, cluster):
    place = {"workers": list(cluster.workers), "index": cluster.index}
    return [sys.executable, *argv, "--worker", json.dumps(place)]


def _together(commands):
    """Runs processes at the same time; returns the lines of the first."""
    running = [
        subprocess.Popen(each, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for each in commands
    ]
    try:
        return running[0].communicate(timeout=600)[0].splitlines()
    finally:
        for each in running:
            each.kill()
            each.wait()


def _gloo(sizes, rounds):
    """Milliseconds by size; {} where torch is not installed."""
    try:
        python = peer_python("torch")
    except FileNotFoundError:
        return {}
    script = HERE / "peers" / "torch_all_reduce.py"
    plan = json.dumps([sizes, rounds, _hosts.on_this_machine(1, 0)[0].address])
    lines = _together([[str(python), str(script), str(rank), plan] for rank in range(2)])
    return dict(json.loads(lines[-1])) if lines else {}


def work(cluster, sizes, rounds):
    """One of the processes; prints (size, bare, ours) in kB and ms."""
    config = worker_config(cluster)
    target = make_server(cluster).target
    rows = []
    for number, kilobytes in enumerate(sizes):
        with tf.Graph().as_default() as graph:
            session = tf.Session(target, graph=graph, config=config)
            first_key = 10000 * number + 1
            exchange, bare, ours = build(cluster, kilobytes, first_key)
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            other = tf.Session(target, graph=graph, config=config)
            rows.append(
                [kilobytes, *measure(session, other, exchange, [bare, ours], kilobytes, rounds)]
            )
    sys.stdout.write(json.dumps(rows) + "\n")
    sys.stdout.flush()
    time.sleep(2)  # the other one may still be reading


def build(cluster, kilobytes, first_key):
    """The exchange of some gradients, and the ops of a bare step and of ours."""
    floats, start = kilobytes * 250, tf.ones_initializer()
    shapes = [TENSOR] * (floats // TENSOR) + [floats % TENSOR] * (floats % TENSOR > 0)
    # TensorFlow 1.15 shares variables of one name between the sessions of a server.
    with tf.device("/device:CPU:0"), tf.variable_scope(f"from{first_key}"):
        variables = [tf.get_variable(f"v{i}", [n], initializer=start) for i, n in enumerate(shapes)]
        whole = tf.get_variable("whole", [floats], initializer=start)
        exchange = Exchange(2, cluster.index, first_key=first_key)
        pairs = exchange.reduce([(each.read_value(), each) for each in variables])
        ours = tf.group(exchange.send, *[gradient.op for gradient, _ in pairs])
        bare = all_reduce(whole.read_value(), 2, first_key + 9000, average=True).op
    return exchange, bare, ours


def measure(session, other, exchange, ops, kilobytes, rounds):
    """Milliseconds of each op, the quickest of the rounds."""

    def collect():
        call = other.make_callable(list(exchange.collect))
        while not call()[0].any():
            pass

    thread = threading.Thread(target=collect)
    thread.start()
    steps = int(np.clip(200000 // kilobytes, 5, 300))
    calls = [session.make_callable(op) for op in ops]
    best = [np.inf] * len(calls)
    for _ in range(rounds):
        for which, call in enumerate(calls):
            for _ in range(3):
                call()
            start = time.perf_counter()
            for _ in range(steps):
                call()
            best[which] = min(best[which], (time.perf_counter() - start) / steps * 1000)
    exchange.leave(session, -1)
    thread.join()
    return best


if __name__ == "__main__":
    main()
