"""A process of a group: does the runs of some plans, a JSON list, and prints what came of each.

It goes on after an error, except in the last plan. `Plan` has what a plan may say.
"""

import ctypes
import json
import os
import sys
import time

import numpy as np

from tensorpack import callbacks as hooks
from tensorpack import train as trainers
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.graph_builder import ModelDesc
from tensorpack.input_source import FeedInput, QueueInput
from tensorpack.models import BatchNorm
from tensorpack.tfutils.gradproc import GlobalNormClip, SummaryGradient
from tensorpack.tfutils.optimizer import apply_grad_processors
from tensorpack.utils import fix_rng_seed, logger
from tensorpack.utils.cluster import Cluster

BATCH, POINTS = 4, 48  # whole batches of two workers, of three, and of two with two towers each
CLUSTER = Cluster.from_environment() or Cluster(("localhost:1",))
INDEX, WORKERS = CLUSTER.index, CLUSTER.num_workers
TRAINERS = {
    "all-reduce": trainers.CollectiveTrainer,
    "servers": trainers.DistributedReplicatedTrainer,
    "asynchronous": trainers.DistributedTrainerParameterServer,
}
OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    # Adam divides a gradient by its own size, so with a small epsilon the rounding of one that is
    # almost 0 decides about the whole update.
    "adam": lambda: tf.train.AdamOptimizer(0.01, epsilon=0.05),
    "clip": lambda: apply_grad_processors(
        tf.train.GradientDescentOptimizer(1.0), [GlobalNormClip(0.1), SummaryGradient()]
    ),
    "statistics": lambda: tf.train.GradientDescentOptimizer(0.02),
}


class Plan:
    """The defaults of a plan."""

    kind = "all-reduce"  # of `TRAINERS`
    model = "momentum"  # or one of `OPTIMIZERS`, "averages", "more"
    steps, epochs, more_steps, more_epochs = 8, 2, 0, 0  # more in worker 1
    timeout, stop_grace, compression, towers = 60.0, 20.0, None, 1
    pause = 0.0  # seconds after each step
    at, action = None, ""  # worker and step, and "stop", "exit", "fail" or "no data" there
    slow, evaluation = [0, 0.0], 0.0  # a worker, and seconds in its setup; seconds of the chief
    save_to, resume, deterministic, shuffle = None, "never", False, False
    feed = False  # whether the data come by `FeedInput`
    run_alone = None  # a bool for `MergeAllSummaries`
    compare = False  # whether the chief trains alone, too, with the data of all

    def __init__(self, options):
        vars(self).update(options)


class Model(ModelDesc):
    """A net with one hidden layer behind a table of rows, so that it has a sparse gradient."""

    def __init__(self, name):
        self._name = name

    def inputs(self):
        return [tf.TensorSpec([None], tf.int32, "row"), tf.TensorSpec([None], tf.float32, "target")]

    def build_graph(self, row, target):
        name, start = self._name, tf.random_normal_initializer(seed=INDEX)
        table = tf.get_variable("table", [16, 3], initializer=start)
        weight = tf.get_variable("weight", [3, 1], initializer=start)
        if name == "more" and INDEX:
            tf.get_variable("another", [], initializer=start)
        # the norm of a sparse gradient counts each occurrence of a row apart
        sparse = name != "clip"
        rows = tf.gather(table, row) if sparse else tf.matmul(tf.one_hot(row, 16), table)
        if name == "statistics":
            rows = BatchNorm("bn", rows, sync_statistics="horovod")
        if name == "averages":  # of each worker, and random numbers
            rows = BatchNorm("bn", rows) + 0.01 * tf.random.normal([BATCH, 3])
        output = tf.matmul(tf.tanh(rows), weight)[:, 0]
        return tf.reduce_mean(tf.square(output - target), name="cost")

    def optimizer(self):
        return OPTIMIZERS.get(self._name, lambda: tf.train.MomentumOptimizer(0.05, 0.9))()


def shard(workers, index, towers):
    """The batches of a worker; those of one with the K-fold batch if `workers` is 1."""
    rng = np.random.RandomState(3)
    rows, targets = rng.randint(0, 16, POINTS), rng.randn(POINTS).astype(np.float32)
    whole = BATCH * WORKERS * towers
    size, own = (whole, whole) if workers == 1 else (BATCH, BATCH * towers)
    starts = [s for w in range(own * index, POINTS, whole) for s in range(w, w + own, size)]
    return [[rows[i : i + size].astype(np.int32), targets[i : i + size]] for i in starts]


class Watch(hooks.Callback):
    """Says where a worker is, and does what its plan says."""

    _chief_only = False

    def __init__(self, plan, result):
        self._plan, self._result = plan, result

    def _setup_graph(self):
        say("is set up")
        time.sleep(self._plan.slow[1] if INDEX == self._plan.slow[0] else 0)

    def _trigger_step(self):
        say(f"step {self.global_step}")
        time.sleep(self._plan.pause)
        ends = {"stop": trainers.StopTraining(), "exit": SystemExit(0), "fail": KeyError("broken")}
        if self._plan.at == [INDEX, self.global_step] and self._plan.action in ends:
            raise ends[self._plan.action]

    def _trigger_epoch(self):
        time.sleep(self._plan.evaluation if INDEX == 0 else 0)

    def _after_train(self):
        self._result["step"] = self.trainer.loop.steps_taken
        values = self.trainer.sess.run(tf.trainable_variables())
        self._result["weights"] = [each.astype(float).ravel().tolist() for each in values]


def train(plan, result, data, **options):
    """Trains, on these data, with these options of the trainer."""
    fix_rng_seed(7)
    lacks = plan.action == "no data"
    ends = lacks and INDEX == plan.at[0]
    data = DataFromList(data[: plan.at[1]] if ends else data, plan.shuffle)
    watch, cost = Watch(plan, result), hooks.ProcessTensors(["cost"], lambda cost: None)
    callbacks = [hooks.RunUpdateOps(), watch, cost]  # the chief fetches more than the others
    callbacks += [hooks.ModelSaver()] * (plan.save_to is not None)
    if plan.run_alone is not None:
        callbacks.append(hooks.MergeAllSummaries(run_alone=plan.run_alone))
    with tf.Graph().as_default():
        trainer = TRAINERS[plan.kind](plan.towers, timeout=plan.timeout, **options)
        trainer.stop_grace = plan.stop_grace
        trainer.train_with_defaults(
            data=FeedInput(data, infinite=not ends) if lacks or plan.feed else QueueInput(data),
            model=Model(plan.model),
            callbacks=callbacks,
            extra_callbacks=[],
            monitors=[],
            steps_per_epoch=plan.steps + INDEX * plan.more_steps,
            max_epoch=plan.epochs + INDEX * plan.more_epochs,
            resume=plan.resume,
            deterministic=plan.deterministic,
        )


def main(plans):
    if "TEST_NAMESPACE" in os.environ:  # of the network; no thread must have started
        with open(f"/run/netns/{os.environ['TEST_NAMESPACE']}") as namespace:
            entered = ctypes.CDLL(None).setns(namespace.fileno(), 0x40000000) == 0  # CLONE_NEWNET
        assert entered
    plans = [Plan(each) for each in json.loads(plans)]
    for plan in plans:
        result = {}
        try:
            if plan.save_to is not None:
                logger.set_logger_dir(plan.save_to, "keep")
            options = {} if plan.compression is None else {"compression": plan.compression}
            train(plan, result, shard(WORKERS, INDEX, plan.towers), **options)
            if plan.compare and INDEX == 0:
                data, plan.towers, alone = shard(1, 0, plan.towers), 1, {}
                train(plan, alone, data, alone=True)
                result["expected"] = alone["weights"]
        except Exception as error:
            result["error"] = f"{type(error).__name__}: {error}"
            if plan is plans[-1]:
                raise
        finally:
            say(f"RESULT {json.dumps(result)}")


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
