"""What tests of predictors run in a process that has no session: each case returns plain values."""

import json
import multiprocessing
import os
import signal
import sys

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.dataflow import DataFromList, MultiProcessMapData
from tensorpack.predict import (
    MultiProcessDatasetPredictor,
    MultiProcessPredictWorker,
    MultiProcessQueuePredictWorker,
    PredictConfig,
    SimpleDatasetPredictor,
)
from tensorpack.tfutils.sessinit import DictRestore
from tensorpack.utils.concurrency import DIE, ProcessGroup, start_proc_mask_signal
from tests.helpers import TinyModel

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def config(**options):
    """A predictor of `3 x + 1`."""
    init = DictRestore({"weight": np.float32(3), "bias": np.float32(1)})
    options = {"input_names": ["x"], "session_init": init, **options}
    return PredictConfig(TinyModel(), output_names=["predicted"], **options)


def flow(count):
    return DataFromList([[np.float32([i])] for i in range(count)], shuffle=False)


def values(results):
    return [float(outputs[0][0]) for outputs in results]


@case
def forked_dataset():
    tripled = MultiProcessMapData(flow(4), 1, lambda dp: [3 * dp[0]], buffer_size=2, strict=True)
    with SimpleDatasetPredictor(config(), tripled) as predictor:
        return values(predictor.get_result())


@case
def ordered():
    with MultiProcessDatasetPredictor(config(), flow(20), 2) as predictor:
        started = len(multiprocessing.active_children())
        passes = [values(predictor.get_all_result()) for _ in range(2)]
    return {"started": started, "passes": passes, "left": len(multiprocessing.active_children())}


@case
def unordered():
    with MultiProcessDatasetPredictor(config(), flow(20), 2, ordered=False) as predictor:
        return sorted(values(predictor.get_result()))


@case
def wrong():
    datapoints = DataFromList([[np.float32([1])], [np.float32([[1]])]], shuffle=False)
    with MultiProcessDatasetPredictor(config(), datapoints, 2) as predictor:
        try:
            predictor.get_all_result()
        except ValueError as error:
            return str(error)


@case
def dies():
    def kill(x):
        os.kill(os.getpid(), signal.SIGKILL)
        return x

    killing = PredictConfig(
        tower_func=lambda x: tf.py_func(kill, [x], tf.float32, name="out"),
        input_signature=[tf.TensorSpec([None], tf.float32, "x")],
        output_names=["out"],
    )
    with MultiProcessDatasetPredictor(killing, flow(4), 2) as predictor:
        try:
            predictor.get_all_result()
        except RuntimeError as error:
            return f"{type(error).__name__}: {error}"


@case
def queues():
    context = multiprocessing.get_context("fork")
    asked, answered = context.Queue(), context.Queue()
    workers = [MultiProcessQueuePredictWorker(i, asked, answered, config()) for i in range(2)]
    with ProcessGroup(workers):
        start_proc_mask_signal(workers)
        for number in range(4):
            asked.put((number, [np.float32([number])]))
        for _ in workers:
            asked.put((DIE, None))
        found = [answered.get(timeout=60) for _ in range(6)]
        for each in workers:
            each.join(10)
        codes = [each.exitcode for each in workers]
    assert all(isinstance(each, MultiProcessPredictWorker) for each in workers)
    assert [outputs for number, outputs in found if number is DIE] == [None, None]
    results = {number: float(outputs[0][0]) for number, outputs in found if number is not DIE}
    return {"codes": codes, "results": [results[number] for number in range(4)]}


def main(name):
    """Prints what a case returns."""
    sys.stdout.write("result " + json.dumps(CASES[name]()))
