"""A point of the curves of `growth.py`: of this project, of tensorpack 0.11, or of TensorFlow.

    PYTHON benchmarks/peers/growing.py train '{"variables": 100}'

Prints seconds and megabytes by name, as JSON. One source for all of them; Python 3.7.
"""

import glob
import json
import os
import resource
import statistics
import sys
import tempfile
import time

FACTS = 8  # numbers in a variable
FRAME, HISTORY, BATCH = (84, 84), 4, 64


def cost_of(tf, variables, summaries=0):
    """Each variable is learned, from a constant."""
    made = [tf.get_variable(f"v{i}", [FACTS]) for i in range(variables)]
    costs = [tf.reduce_sum(tf.square(each - 1.0)) for each in made]
    for i in range(summaries):
        tf.summary.scalar(f"number{i}", costs[i % variables])
    return tf.add_n(costs, name="cost")


def megabytes_of(folder, step):
    """What the checkpoint of a step takes on the disk."""
    return sum(map(os.path.getsize, glob.glob(f"{folder}/**/*-{step}*", recursive=True))) / 1e6


def resident():
    """Megabytes of this process, the most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def train(variables=10, summaries=1, callbacks=0, towers=1, epochs=6, steps=200, kept=0, at=()):
    """A training; `kept` checkpoints stay, and `at` are epochs after which the time is noted."""
    import tensorpack as tp
    from tensorpack.compat import tfv1 as tf
    from tensorpack.input_source import TensorInput
    from tensorpack.utils import logger

    seconds, ends, begun = [], [], time.perf_counter()

    class Model(tp.ModelDesc):
        def inputs(self):
            return [tf.TensorSpec([1], tf.float32, "x")]

        def build_graph(self, x):
            return cost_of(tf, variables, summaries)

        def optimizer(self):
            return tf.train.GradientDescentOptimizer(0.01)

    class Empty(tp.Callback):
        def _trigger_step(self):
            pass

    class Clock(tp.Callback):
        first = None

        def _before_epoch(self):
            self._start = time.perf_counter()

        def _trigger_step(self):
            self.first = self.first or time.perf_counter() - begun

        def _after_epoch(self):
            ends.append(time.perf_counter())
            seconds.append((ends[-1] - self._start) / steps)

    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        logger.set_logger_dir(os.path.join(folder, "log"), "d")
        saver = [tp.ModelSaver(max_to_keep=kept or 1)] if kept or not at else []
        config = tp.TrainConfig(
            model=Model(),
            data=TensorInput(lambda: [tf.zeros([1])], 10**9),
            callbacks=[clock, *saver, *(Empty() for _ in range(callbacks))],
            steps_per_epoch=steps,
            max_epoch=epochs,
        )
        one = tp.SimpleTrainer() if towers == 1 else tp.SyncMultiGPUTrainerReplicated(towers)
        tp.launch_train_with_config(config, one)
        size = megabytes_of(folder, epochs * steps)
    return {
        "step": statistics.median(seconds[1:]),
        "start-up": clock.first,
        "memory": resident(),
        "checkpoint": size,
        **{f"after {epoch}": ends[epoch - 1] - ends[0] for epoch in at},
    }


def bare(variables=10, steps=1000, at=()):
    """The same graph in a loop around a session; `at` are saves after which the time is noted."""
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
    begun = time.perf_counter()
    update = tf.train.GradientDescentOptimizer(0.01).minimize(cost_of(tf, variables))
    saver, ends = tf.train.Saver(max_to_keep=10**6), []
    with tempfile.TemporaryDirectory() as folder, tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        call = sess.make_callable(update)
        call()
        start = time.perf_counter()
        for _ in range(steps):
            call()
        step = (time.perf_counter() - start) / steps
        for number in range(max(at or [1])):
            saver.save(sess, f"{folder}/model", number, write_meta_graph=False)
            ends.append(time.perf_counter())
        size = megabytes_of(folder, 0)
    times = {f"after {number}": ends[number - 1] - ends[0] for number in at}
    return {
        "step": step,
        "start-up": start - begun,
        "memory": resident(),
        "checkpoint": size,
        **times,
    }


def datapoints(count=1000):
    """A shuffled list of lists: its first datapoint, and a whole pass."""
    import tensorpack.dataflow as df

    flow = df.DataFromList([[number] for number in range(count)])
    before = resident()
    flow.reset_state()
    start, first = time.perf_counter(), None
    for _ in flow:
        first = first or time.perf_counter() - start
    return {"first": first, "pass": time.perf_counter() - start, "memory": resident() - before}


def frames(count=1000, calls=50):
    """A replay memory that is filled and sampled; this project alone."""
    import numpy as np

    from tensorpack.RL import ReplayMemory

    memory, rng = ReplayMemory(count, FRAME, HISTORY), np.random.RandomState(0)
    zero, no = np.zeros(1, np.int64), np.zeros(1, bool)
    image, start = rng.randint(256, size=(1, *FRAME)).astype(np.uint8), time.perf_counter()
    for _ in range(count):
        memory.append(image, zero, zero, no, no)
    filled = time.perf_counter()
    for _ in range(calls):
        memory.sample(BATCH, rng)
    sample = (time.perf_counter() - filled) / calls
    return {"filling": filled - start, "sample": sample, "memory": resident()}


if __name__ == "__main__":
    found = globals()[sys.argv[1]](**json.loads(sys.argv[2]))
    sys.stdout.write("RETURNED " + json.dumps(found) + "\n")
