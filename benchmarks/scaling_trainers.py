"""Measures a step of the trainers for several towers and processes, for docs/scaling.md.

    python benchmarks/scaling_trainers.py [--only NAME,...] [--counts 2,3,4] [--write]

Each trains a model that computes about 25 ms on a thread and has gradients of 1 kB or 16 MB: with
towers on virtual CPU devices of one process, or in processes that `python -m tensorpack.launch`
starts here. A figure is that of the chief's quickest epoch of five steps, in ms a step; the others
are compared with SimpleTrainer. The bytes over loopback are those of the middle epoch, of all
programs: run it by `unshare -n sh -c "ip link set lo up; ..."` to count those of the trainer alone.
With `--write` the points of this TensorFlow are replaced in docs/scaling/measured.json.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time

from _programs import ROOT, output_of
from _report import say
from scaling_points import computed, version, write

SIZES = (1000, 16000000)
STEPS, EPOCHS = 5, 8
OF_TOWERS = ("SyncMultiGPUTrainerReplicated", "SyncMultiGPUTrainerParameterServer")
OF_SERVERS = ("DistributedReplicatedTrainer",)
TRAINERS = ("SimpleTrainer", *OF_TOWERS, *OF_SERVERS, "CollectiveTrainer")
MARK = "MS A STEP:"
HEAD = "trainer                              count       bytes   ms a step  bytes over loopback"


def measure(name, count, size):
    """The point of a trainer with so many towers or workers."""
    command = [__file__, "--train", json.dumps([name, count, size])]
    if name not in OF_TOWERS and name != "SimpleTrainer":
        servers = 1 if name in OF_SERVERS else 0
        launch = ["-m", "tensorpack.launch", "--workers", count, "--ps", servers]
        command = [*launch, *command]
    printed = output_of(*command)
    found = [line for line in printed.splitlines() if MARK in line]
    ms, sent, tensorflow = json.loads(found[0].partition(MARK)[2])
    say(f"{name:36}{count:6}{size:12}{ms:12.3f}{sent:21,.0f}")
    return {
        "kind": name,
        "processes": count,
        "bytes": size,
        "packs": 1,
        "ms": round(ms, 3),
        "tensorflow": tensorflow,
    }


def over_loopback():
    """Bytes that have come over loopback since the machine started."""
    with open("/proc/net/dev", encoding="ascii") as file:
        counts = [line.split(":")[1] for line in file if line.strip().startswith("lo:")]
    return int(counts[0].split()[0]) if counts else 0


def train(name, count, size):
    """Runs one process; the chief prints its figure."""
    import tensorpack.train
    from tensorpack.callbacks import Callback
    from tensorpack.compat import tfv1 as tf
    from tensorpack.graph_builder import ModelDesc
    from tensorpack.input_source import DummyConstantInput
    from tensorpack.tfutils import get_default_sess_config
    from tensorpack.utils import logger
    from tensorpack.utils.cluster import Cluster

    class Model(ModelDesc):
        """A gradient that is known once everything is computed."""

        def inputs(self):
            return [tf.TensorSpec([1], tf.float32, "nothing")]

        def build_graph(self, nothing):
            kwargs = {"initializer": tf.zeros_initializer(), "use_resource": True}
            weights = tf.get_variable("weights", [size // 4], **kwargs)
            work = tf.stop_gradient(computed(tf)) + nothing[0]
            return tf.reduce_sum(weights) * work

        def optimizer(self):
            return tf.train.GradientDescentOptimizer(0.1)

    class Times(Callback):
        """The seconds of each epoch, and the bytes over loopback."""

        _chief_only = False

        def __init__(self):
            self.seconds, self.sent = [], []

        def _before_epoch(self):
            self._begin = time.perf_counter(), over_loopback()

        def _after_epoch(self):
            self.seconds.append(time.perf_counter() - self._begin[0])
            self.sent.append(over_loopback() - self._begin[1])

    logger.set_logger_dir(tempfile.mkdtemp(), action="k")
    times, of_towers = Times(), name in OF_TOWERS
    session_config = get_default_sess_config()
    session_config.intra_op_parallelism_threads = 1
    if of_towers:
        session_config.device_count["CPU"] = count
    config = tensorpack.train.TrainConfig(
        model=Model(),
        data=DummyConstantInput([[1]]),
        callbacks=[times],
        extra_callbacks=[],
        monitors=[],
        session_config=session_config,
        steps_per_epoch=STEPS,
        max_epoch=EPOCHS,
        nr_tower=count if of_towers else 1,
    )
    make, cluster = getattr(tensorpack.train, name), Cluster.from_environment()
    if name == "CollectiveTrainer":
        tensorpack.train.launch_train_with_config(config, make())
    elif name in OF_SERVERS:
        spec = tf.train.ClusterSpec(cluster.as_dict())
        server = tf.train.Server(spec, job_name=cluster.job, task_index=cluster.index)
        if name == "DistributedReplicatedTrainer":
            make(config, server).train()
        else:
            tensorpack.train.launch_train_with_config(config, make(1, server))
    elif name == "SyncMultiGPUTrainerParameterServer":
        make(config, ps_device="cpu").train()
    else:
        make(config).train()
    if cluster is None or cluster.is_chief:
        ms, sent = min(times.seconds) / STEPS * 1000, statistics.median(times.sent) / STEPS
        say(MARK + json.dumps([ms, sent, version(tf)]))


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(TRAINERS), help="trainers, by commas")
    parser.add_argument("--counts", default="1,2,3,4", help="towers or workers")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--train", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.train:
        sys.path.insert(0, str(ROOT))
        train(*json.loads(args.train))
        return
    say(HEAD)
    for name in args.only.split(","):
        points = []
        for count in [1] if name == "SimpleTrainer" else map(int, args.counts.split(",")):
            if count == 1 and name not in ("SimpleTrainer", *OF_SERVERS):
                continue  # they are SimpleTrainer then
            for size in SIZES:
                points.append(measure(name, count, size))
        if args.write:
            write(points)


if __name__ == "__main__":
    main()
