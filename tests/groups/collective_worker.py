"""A worker for tests of `CollectiveTrainer`: does the runs of some plans, and prints JSON."""

import json
import sys
import threading
import time

import numpy as np

from tensorpack.callbacks import Callback, MergeAllSummaries, ModelSaver
from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList
from tensorpack.graph_builder import ModelDesc
from tensorpack.input_source import FeedInput
from tensorpack.models import BatchNorm
from tensorpack.tfutils.gradproc import GlobalNormClip, SummaryGradient
from tensorpack.tfutils.optimizer import apply_grad_processors
from tensorpack.train import (
    CollectiveTrainer,
    StopTraining,
    TrainConfig,
    TrainingInterrupted,
    launch_train_with_config,
    prepare_log_dir,
)
from tensorpack.utils.cluster import Cluster

BATCH, POINTS = 4, 48  # whole batches of two workers, and of three
CLUSTER = Cluster.from_environment() or Cluster(("localhost:1",))
INDEX, WORKERS = CLUSTER.index, CLUSTER.num_workers
OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    # Adam divides a gradient by its own size, so with a small epsilon the rounding of one that is
    # almost 0 decides about the whole update, and the factor of an average about nothing. With this
    # one a gradient that is off by d changes an update by at most 0.05 / 0.05 x d, about 1e-7.
    "adam": lambda: tf.train.AdamOptimizer(0.05, epsilon=0.05),
    "statistics": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "clip": lambda: apply_grad_processors(
        tf.train.GradientDescentOptimizer(10.0), [GlobalNormClip(0.01)]
    ),
    "summary": lambda: apply_grad_processors(
        tf.train.GradientDescentOptimizer(0.1), [GlobalNormClip(1.0), SummaryGradient()]
    ),
}


class Model(ModelDesc):
    """A net with one hidden layer behind a table of rows, so that it has a sparse gradient."""

    def __init__(self, optimizer):
        self._optimizer = optimizer

    def inputs(self):
        return [tf.TensorSpec([None], tf.int32, "row"), tf.TensorSpec([None], tf.float32, "target")]

    def build_graph(self, row, target):
        start = tf.random_normal_initializer(seed=INDEX)  # worker 0 gives them to all
        table = tf.get_variable("table", [16, 3], initializer=start)
        weight = tf.get_variable("weight", [3, 1], initializer=start)
        # the norm of a sparse gradient counts each occurrence of a row apart
        sparse = self._optimizer != "clip"
        rows = tf.gather(table, row) if sparse else tf.matmul(tf.one_hot(row, 16), table)
        if self._optimizer == "statistics":
            rows = BatchNorm("bn", rows, sync_statistics="horovod")
        output = tf.matmul(tf.tanh(rows), weight)[:, 0]
        return tf.reduce_mean(tf.square(output - target))

    def optimizer(self):
        return OPTIMIZERS[self._optimizer]()


def shard(workers, index):
    """The batches of a worker; those of one with the K-fold batch if `workers` is 1."""
    rng = np.random.RandomState(3)
    rows, targets = rng.randint(0, 16, POINTS), rng.randn(POINTS).astype(np.float32)
    whole = BATCH * WORKERS
    size = whole // workers
    starts = range(size * index, POINTS, whole)
    return [[rows[i : i + size].astype(np.int32), targets[i : i + size]] for i in starts]


class Watch(Callback):
    _chief_only = False

    def __init__(self, plan):
        self._plan = plan

    def _setup_graph(self):
        self._variables = tf.trainable_variables()

    def _trigger_step(self):
        time.sleep(self._plan.get("seconds", 0))
        if self.global_step == 3:
            sys.stdout.write("step 3\n")
            sys.stdout.flush()
        if self._plan.get("at") == [INDEX, self.global_step]:
            action = self._plan["action"]
            if action == "stop":
                raise StopTraining()
            if action == "fail":
                raise KeyError("broken")

    def _after_train(self):
        self._plan["step"] = self.trainer.loop.steps_taken
        values = self.trainer.sess.run(self._variables)
        self._plan["weights"] = [each.astype(float).ravel().tolist() for each in values]


def train(plan, cluster, data):
    trainer = CollectiveTrainer(
        cluster=cluster, timeout=plan.get("timeout", 60.0), compression=plan.get("compression")
    )
    short = plan.get("action") == "end of data" and INDEX == plan["at"][0]
    data = DataFromList(data[: plan["at"][1]] if short else data, plan.get("shuffle", False))
    callbacks = [Watch(plan)] + [ModelSaver()] * ("dir" in plan)
    if plan.get("optimizer") == "summary":
        callbacks.append(MergeAllSummaries(run_alone=plan["run_alone"]))
    config = TrainConfig(
        data=FeedInput(data, infinite=not short),
        model=Model(plan.get("optimizer", "sgd")),
        callbacks=callbacks,
        extra_callbacks=[],
        monitors=[],
        steps_per_epoch=plan.get("steps", 8) + INDEX * plan.get("more_steps", 0),
        max_epoch=plan.get("epochs", 2),
        resume=plan.get("resume", "never"),
    )
    launch_train_with_config(config, trainer)


def report(plan):
    plan["timers"] = sum(each.name == "GroupTimer" for each in threading.enumerate())
    sys.stdout.write(f"RESULT {json.dumps(plan)}\n")
    sys.stdout.flush()


def main(plans):
    for plan in json.loads(plans):
        if "dir" in plan:
            plan["resume"] = prepare_log_dir(plan["dir"], plan.get("resume", "never"))
        try:
            with tf.Graph().as_default():
                train(plan, CLUSTER, shard(WORKERS, INDEX))
            if plan.get("compare") and INDEX == 0:
                whole = dict(plan, at=None)
                with tf.Graph().as_default():
                    train(whole, Cluster(("localhost:1",)), shard(1, 0))
                plan["expected"] = whole["weights"]
        except (Exception, StopTraining, TrainingInterrupted) as error:
            plan["error"] = f"{type(error).__name__}: {error}"
            if plan.get("raises"):
                report(plan)
                raise
        report(plan)
