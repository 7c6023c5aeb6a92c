"""The datapoints that R8 sends between processes.

numpy, and OpenCV for pictures; Python 3.7: each peer runs it in an environment of its own.
"""

import numpy as np

LARGE = (64, 224, 224, 3)  # 9.6 MB
SMALL = (84, 84, 4)  # 28 kB
BATCH = 64  # pictures, or small records
NUMBERS = 128  # bytes of a small record


def datapoint_of(kind):
    """A list with one array, or a dict of a few; the last element of the first is 1."""
    if kind in ("small", "large"):
        return [np.ones(LARGE if kind == "large" else SMALL, np.uint8)]
    image = np.ones(SMALL[:2], np.uint8)
    if kind.endswith("image"):
        return [image]
    return {"image": image, "label": np.int64(1), "box": np.ones(4, np.float32)}


def first(datapoint):
    """The array that `check` looks at."""
    return datapoint["image"] if isinstance(datapoint, dict) else datapoint[0]


def records(kind):
    """What R19 writes into a file: (bytes, label); 100,000 small ones, or 1,024 JPEGs."""
    if kind == "jpegs":
        return [(jpeg, number % 10) for number, jpeg in enumerate(4 * pictures())]
    rng = np.random.RandomState(0)
    last = np.ones(1, np.uint8).tobytes()  # to be recognised
    return [(rng.bytes(NUMBERS - 1) + last, number % 10) for number in range(100000)]


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


def decoded(datapoint):
    """One picture."""
    return [decode(datapoint[0])]


def same(datapoint):
    """The datapoint."""
    return datapoint


def length(kind):
    """How many datapoints an element of the stream stands for."""
    return BATCH if kind == "jpegs" else 1


def check(array):
    """Looks at the last element of an array or a tensor."""
    while len(array.shape) > 1:
        array = array[-1]
    if float(array[-1]) != 1:
        raise RuntimeError("The data has changed on its way.")
