"""How long a training takes to end after a Ctrl-C, while its main thread waits in TensorFlow.

    python benchmarks/interrupt_latency.py [--runs 50]

Each run is a process of its own: a tiny model that is saved, fed through a queue by a dataflow that
hangs after some datapoints, so that the step waits at an empty queue. Prints the seconds from
SIGINT to the end of the process: the median and the worst. Fails if an exit code is not 130.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
HANGS = "the dataflow hangs"
SETTLE = 0.5  # seconds in which the main thread has emptied the queue
TOO_LONG = 60.0


def train(directory):
    """Trains for ever; what the child process does."""
    import tensorpack as tp
    from tensorpack.compat import tfv1 as tf

    class Line(tp.ModelDesc):
        def inputs(self):
            return [
                tf.TensorSpec((None,), tf.float32, "x"),
                tf.TensorSpec((None,), tf.float32, "y"),
            ]

        def build_graph(self, x, y):
            slope = tf.get_variable("slope", [])
            return tf.reduce_mean(tf.square(x * slope - y), name="cost")

        def optimizer(self):
            return tf.train.GradientDescentOptimizer(0.1)

    class Hangs(tp.DataFlow):
        def __iter__(self):
            for _ in range(30):
                yield [np.ones(4, np.float32)] * 2
            sys.stdout.write(HANGS + "\n")
            sys.stdout.flush()
            threading.Event().wait()

    tp.logger.set_logger_dir(directory)
    config = tp.TrainConfig(
        dataflow=Hangs(),
        model=Line(),
        callbacks=[tp.ModelSaver()],
        steps_per_epoch=1000,
        max_epoch=1000,
    )
    tp.QueueInputTrainer(config).train()


def measure(directory):
    """Seconds from the signal to the end of one run."""
    command = [sys.executable, "-u", __file__, "--train", directory]
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
    )
    lines = []
    for line in child.stdout:
        lines.append(line)
        if HANGS in line:
            break
    rest = threading.Thread(target=lambda: lines.extend(child.stdout))
    rest.start()
    time.sleep(SETTLE)
    start = time.perf_counter()
    child.send_signal(signal.SIGINT)
    try:
        code = child.wait(TOO_LONG)
    finally:
        took = time.perf_counter() - start
        child.kill()
        rest.join()
        child.stdout.close()
    if code != 128 + signal.SIGINT:
        raise RuntimeError(f"The run ended with {code}:\n{''.join(lines)}")
    return took


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--train", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.train is not None:
        train(args.train)
        return
    from tensorpack.compat import tfv1 as tf

    seconds, load = [], os.getloadavg()[0]
    for _ in range(args.runs):
        with tempfile.TemporaryDirectory() as directory:
            seconds.append(measure(directory))
    sys.stdout.write(
        f"TensorFlow {tf.__version__}, {args.runs} runs, load {load:.1f} before and "
        f"{os.getloadavg()[0]:.1f} after: median {statistics.median(seconds):.3f} s, "
        f"worst {max(seconds):.3f} s\n"
    )


if __name__ == "__main__":
    main()
