"""The datapoints that R8 sends between processes, and the clock it takes their rate with.

numpy, and OpenCV for pictures; Python 3.7: each peer runs it in an environment of its own.
"""

import argparse
import itertools
import time

import numpy as np

__all__ = [
    "BATCH",
    "KINDS",
    "LARGE",
    "SMALL",
    "count_per_second",
    "decode",
    "endless",
    "parse_args",
    "pictures",
]

LARGE = (64, 224, 224, 3)  # 9.6 MB
SMALL = (84, 84, 4)  # 28 kB
KINDS = ("small", "large", "ragged", "jpegs")
BATCH = 64  # pictures
WARM_UP = 1.0  # seconds


def parse_args(description):
    """The command line that all of them have."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--kind", choices=KINDS, default="large")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0)
    return parser.parse_args()


def endless(kind):
    """Datapoints without an end, each a list of uint8 or float32 arrays whose last element is 1.

    small and large are one array; ragged is a picture of 32 to 512 rows and 1 to 40 boxes.
    """
    if kind == "ragged":
        rows = np.random.RandomState(0).randint(32, 513, 16)
        ragged = [
            [np.ones((height, 320, 3), np.uint8), np.ones((1 + height % 40, 4), np.float32)]
            for height in rows
        ]
        return itertools.cycle(ragged)
    return itertools.repeat([np.ones(LARGE if kind == "large" else SMALL, np.uint8)])


def pictures():
    """256 JPEGs of 256 x 256 pixels, as bytes; of smooth noise, 20 to 30 kB each."""
    import cv2

    rng = np.random.RandomState(0)
    noise = [rng.randint(0, 256, (64, 64, 3), np.uint8) for _ in range(256)]
    large = [cv2.resize(each, (256, 256), interpolation=cv2.INTER_CUBIC) for each in noise]
    return [cv2.imencode(".jpg", each)[1].tobytes() for each in large]


def decode(jpeg):
    """A picture as uint8 `[224, 224, 3]`; its last element is made 1, to be recognised."""
    import cv2

    cv2.setNumThreads(0)
    picture = cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR)
    picture = cv2.resize(picture, (224, 224))
    picture[-1, -1, -1] = 1
    return picture


def count_per_second(stream, seconds, each=1):
    """How many datapoints per second come out of an endless iterator.

    Args:
      stream: of arrays or tensors; the last element is looked at, and none is kept.
      seconds: how long, after a second to warm up.
      each: how many datapoints one of its elements stands for.
    """
    start, count, begin = time.perf_counter(), 0, None
    for array in stream:
        while len(array.shape) > 1:
            array = array[-1]
        if float(array[-1]) != 1:
            raise RuntimeError("The data has changed on its way.")
        now = time.perf_counter()
        if begin is None:
            if now - start >= WARM_UP:
                begin = now
            continue
        count += each
        if now - begin >= seconds:
            return count / (now - begin)
    raise RuntimeError("The data ended early.")
