"""Measures on this machine what docs/scaling.md predicts: exchanges and steps of 1 to 4 processes.

    python benchmarks/scaling_points.py [--only all-reduce,servers] [--workers 2,3,4] [--write]

Bare graphs, without a trainer, over loopback, all processes on the cores of this machine:

- all-reduce: one `CollectiveReduce` a step between N processes, of 1 kB to 100 MB;
- packs: 16 or 100 MB in 1 to 16 `CollectiveReduce`s at the same time;
- servers: N processes, each of which adds a gradient to the variables of one parameter server and
  reads them, without waiting for the others;
- steps: N processes that compute for a while, all-reduce, and set their variables;
- towers: one process with K virtual CPU devices that compute and average their gradients.

A figure is the quickest of the rounds, in ms a step: what else runs only makes it slower. With
`--write` the points of this TensorFlow are replaced in docs/scaling/measured.json.
"""

import argparse
import json
import os
import platform
import socket
import subprocess
import sys
import time

from _programs import ROOT
from _report import say

POINTS = ROOT / "docs" / "scaling" / "measured.json"
KINDS = ("all-reduce", "packs", "servers", "steps", "towers")
SIZES = [1000, 10000, 100000, 1000000, 10000000, 100000000]
STEP_SIZES = [1000000, 16000000]
PACKS = [(16000000, 1), (16000000, 4), (16000000, 16), (100000000, 12)]  # bytes, ops
COMPUTE = 20  # products of matrices that a step computes, about 1.2 ms each
SIDE = 512  # of these matrices
LIMIT = 600  # seconds
HEAD = "kind        processes       bytes packs   ms a step"


def steps_for(size):
    """How many steps a round of an exchange of so many bytes has."""
    return max(2, min(100, 20000000 // size))


def free_ports(count):
    """Ports of loopback that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def start(kind, workers, rounds):
    """Starts the processes of a point; returns them, the chief first."""
    servers = 1 if kind == "servers" else 0
    count = 1 if kind == "towers" else workers
    ports = free_ports(count + servers)
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports[:count]]}
    if servers:
        cluster["ps"] = [f"127.0.0.1:{port}" for port in ports[count:]]
    roles = [(job, index) for job in ("worker", "ps") for index in range(len(cluster.get(job, ())))]
    processes = []
    for job, index in roles:
        role = json.dumps([kind, cluster, job, index, workers, rounds])
        processes.append(
            subprocess.Popen(
                [sys.executable, __file__, "--role", role],
                env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "2"},
                stdout=subprocess.PIPE if processes == [] else subprocess.DEVNULL,
                stderr=None if processes == [] else subprocess.DEVNULL,
                text=True,
            )
        )
    return processes


def measure(kind, workers, rounds):
    """The points of one kind and number of processes, as dicts for the file."""
    processes = start(kind, workers, rounds)
    try:
        printed, _ = processes[0].communicate(timeout=LIMIT)
        if processes[0].returncode:
            raise RuntimeError(f"{kind} with {workers} processes ended with an error.")
        return json.loads(printed.splitlines()[-1])
    finally:
        for each in processes:
            each.kill()
            each.wait()


# ------------------------------------------------------------------ what the processes run


def play(kind, cluster, job, index, workers, rounds):
    """Runs one process; the chief prints its points as JSON."""
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    # Each process has a thread to compute with, as it would have a device of its own.
    config = tf.ConfigProto(
        intra_op_parallelism_threads=1,
        device_count={"CPU": workers} if kind == "towers" else {},
    )
    if kind in ("all-reduce", "packs", "steps"):
        config.experimental.collective_group_leader = "/job:worker/replica:0/task:0"
    if kind != "towers":  # TensorFlow 1.15 waits for processes that are not named here
        config.device_filters.extend(["/job:ps", f"/job:worker/task:{index}"])
    if kind == "towers":
        target = ""
    else:
        server = tf.train.Server(cluster, job_name=job, task_index=index, config=config)
        target = server.target
        if job == "ps":
            server.join()
    build = {
        "all-reduce": all_reduces,
        "packs": packs,
        "servers": exchanges_with_server,
        "steps": steps,
        "towers": towers,
    }
    with tf.device(f"/job:worker/task:{index}/device:CPU:0" if target else None):
        ops = build[kind](tf, index, workers)
    pace = Pace(tf, workers) if kind == "servers" else None
    with tf.Session(target, config=config) as session:
        initialise(tf, session, kind, index)
        if pace is not None:
            pace.begin(session)
        if pace is not None and index:
            pace.keep_busy(session, [(size, session.make_callable(op)) for size, _, op in ops])
            return
        points = [
            {
                "kind": kind,
                "processes": workers,
                "bytes": size,
                "packs": parts,
                "ms": timed(session.make_callable(op), size, rounds, kind in ("steps", "towers")),
                "tensorflow": version(tf),
            }
            for number, (size, parts, op) in enumerate(ops)
            if pace is None or pace.go_to(session, number)
        ]
        if pace is not None:
            pace.go_to(session, len(ops))
        say(json.dumps(points))
        if index == 0:
            time.sleep(1)  # the others are a step behind


class Pace:
    """Keeps the workers of a server, which do not wait for each other, at the op of the chief."""

    def __init__(self, tf, workers):
        self._workers = workers
        with tf.device("/job:ps/task:0/device:CPU:0"):
            kwargs = {
                "initializer": tf.zeros_initializer(),
                "dtype": tf.int32,
                "use_resource": True,
            }
            self._joined = tf.get_variable("joined", [], **kwargs)
            self._number = tf.get_variable("number", [], **kwargs)
            self._value = tf.placeholder(tf.int32, [])
            self._join = self._joined.assign_add(1)
            self._set = self._number.assign(self._value)

    def begin(self, session):
        session.run(self._join)
        while session.run(self._joined) < self._workers:
            time.sleep(0.05)

    def go_to(self, session, number):
        session.run(self._set, {self._value: number})
        return True

    def keep_busy(self, session, calls):
        number = 0
        while number < len(calls):
            size, call = calls[number]
            for _ in range(max(1, min(20, 10000000 // size))):
                call()
            number = session.run(self._number)


def version(tf):
    return ".".join(tf.__version__.split(".")[:2])


def initialise(tf, session, kind, index):
    session.run(tf.local_variables_initializer())
    if kind == "servers" and index:
        missing = tf.report_uninitialized_variables(tf.global_variables())
        while session.run(missing).size:
            time.sleep(0.05)
    else:
        session.run(tf.global_variables_initializer())


def timed(call, size, rounds, of_compute):
    """The quickest of some rounds, ms a step; the first steps, which connect, are not measured."""
    count, rates = 5 if of_compute else steps_for(size), []
    for _ in range(3):
        call()
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        rates.append((time.perf_counter() - begin) / count * 1000)
    return round(min(rates), 4)


def reduced(tf, tensor, workers, key):
    """The sum of a tensor over the processes."""
    return tf.raw_ops.CollectiveReduce(
        input=tensor,
        group_size=workers,
        group_key=1,
        instance_key=key,
        merge_op="Add",
        final_op="Id",
        subdiv_offsets=[0],
    )


def zeros(tf, name, size):
    return tf.get_variable(name, [size // 4], initializer=tf.zeros_initializer(), use_resource=True)


def computed(tf, name="work"):
    """A scalar that takes a while to compute, zero."""
    matrix = tf.get_variable(name, [SIDE, SIDE], initializer=tf.zeros_initializer())
    product = matrix.read_value()
    for _ in range(COMPUTE):
        product = tf.matmul(product, product)
    return product[0, 0]


def all_reduces(tf, index, workers):
    ops = []
    for key, size in enumerate(SIZES, 1):
        gradient = zeros(tf, f"gradient{key}", size)
        ops.append((size, 1, reduced(tf, gradient.read_value(), workers, key).op))
    return ops


def packs(tf, index, workers):
    ops, key = [], 0
    for size, parts in PACKS:
        sums = []
        for _ in range(parts):
            key += 1
            gradient = zeros(tf, f"gradient{key}", size // parts)
            sums.append(reduced(tf, gradient.read_value(), workers, key))
        ops.append((size, parts, tf.group(*sums)))
    return ops


def exchanges_with_server(tf, index, workers):
    ops = []
    for key, size in enumerate(SIZES, 1):
        with tf.device("/job:ps/task:0/device:CPU:0"):
            variable = zeros(tf, f"variable{key}", size)
        # The gradient exists on this process, and its sum is computed on the server.
        with tf.device(f"/job:worker/task:{index}/device:CPU:0"):
            gradient = tf.get_local_variable(f"gradient{key}", [size // 4])
            sent = tf.identity(gradient)
        ops.append((size, sent, variable))
    return [(size, 1, exchange(tf, sent, variable, index)) for size, sent, variable in ops]


def exchange(tf, sent, variable, index):
    with tf.device("/job:ps/task:0/device:CPU:0"):
        added = variable.assign_add(sent)
    with tf.control_dependencies([added]):
        with tf.device("/job:ps/task:0/device:CPU:0"):
            value = variable.read_value()
        with tf.device(f"/job:worker/task:{index}/device:CPU:0"):
            return tf.identity(value).op


def steps(tf, index, workers):
    ops = []
    for key, size in enumerate(STEP_SIZES, 1):
        variable = zeros(tf, f"variable{key}", size)
        gradient = variable.read_value() + computed(tf, f"work{key}")
        total = gradient if workers == 1 else reduced(tf, gradient, workers, key)
        ops.append((size, 1, variable.assign_sub(total).op))
    return ops


def towers(tf, index, workers):
    ops = []
    for key, size in enumerate(STEP_SIZES, 1):
        variables, gradients = [], []
        for tower in range(workers):
            with tf.device(f"/cpu:{tower}"):
                variables.append(zeros(tf, f"tower{tower}/variable{key}", size))
                work = computed(tf, f"tower{tower}/work{key}")
                gradients.append(variables[-1].read_value() + work)
        with tf.device("/cpu:0"):
            total = tf.add_n(gradients)
        updates = []
        for tower, variable in enumerate(variables):
            with tf.device(f"/cpu:{tower}"):
                updates.append(variable.assign_sub(total))
        ops.append((size, 1, tf.group(*updates)))
    return ops


# ------------------------------------------------------------------ the program


def write(points):
    """Replaces the points of this TensorFlow and of these kinds in the file."""
    kept = json.loads(POINTS.read_text(encoding="utf-8"))["points"] if POINTS.exists() else []
    new = {(each["kind"], each["tensorflow"]) for each in points}
    kept = [each for each in kept if (each["kind"], each["tensorflow"]) not in new]
    machine = f"{cpu()}, {os.cpu_count()} cores, Linux {platform.release()}"
    lines = ",\n".join("    " + json.dumps(each) for each in kept + points)
    text = f'{{\n  "machine": {json.dumps(machine)},\n  "points": [\n{lines}\n  ]\n}}\n'
    POINTS.parent.mkdir(exist_ok=True)
    POINTS.write_text(text, encoding="utf-8")


def cpu():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(KINDS), help="kinds, by commas")
    parser.add_argument("--workers", default="1,2,3,4", help="numbers of processes or towers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.role:
        play(*json.loads(args.role))
        return
    say(HEAD)
    for kind in args.only.split(","):
        points = []
        for workers in map(int, args.workers.split(",")):
            if kind in ("all-reduce", "packs") and workers == 1:
                continue
            for point in measure(kind, workers, args.rounds):
                points.append(point)
                say(f"{kind:12}{workers:9}{point['bytes']:12}{point['packs']:6}{point['ms']:12.3f}")
        if args.write:
            write(points)


if __name__ == "__main__":
    main()
