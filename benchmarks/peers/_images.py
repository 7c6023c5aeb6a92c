"""The photographs of R11, and what is done to them by OpenCV alone.

numpy and OpenCV: the peers run it in an environment of their own. Images are BGR.
"""

import math
from pathlib import Path

import cv2
import numpy as np

BATCH, SIZE = 64, 224
JITTER = (0.6, 1.4)  # factors of brightness, contrast and saturation
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of red, green and blue from 0 to 1
GREY = np.array([0.114, 0.587, 0.299])  # of blue, green and red
AREA, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
ATTEMPTS = 10
NUMBER = 256
WARM_UP = 2.0  # seconds

# What each value of a channel becomes, float32 [1, 256, 3].
_TABLE = np.stack(
    [(np.arange(256, dtype=np.float32) / 255 - mean) / std for mean, std in zip(MEAN, STD)][::-1],
    axis=1,
)[np.newaxis]


def write_photographs(folder):
    """Writes 256 JPEGs of 500 x 375 pixels, some upright; of smooth noise with grain, 100 kB each.

    That is the size of most photographs of ImageNet. Returns their paths.
    """
    folder = Path(folder)
    folder.mkdir(parents=True)
    rng, paths = np.random.RandomState(0), []
    for index in range(NUMBER):
        rows, columns = (500, 375) if index % 4 == 3 else (375, 500)
        coarse = rng.randint(40, 216, (rows // 25, columns // 25, 3), np.uint8)
        image = cv2.resize(coarse, (columns, rows), interpolation=cv2.INTER_CUBIC)
        grain = rng.normal(0, 12, (rows, columns, 1))
        image = np.clip(image + grain, 0, 255).astype(np.uint8)
        paths.append(str(folder / f"{index:03}.JPEG"))
        cv2.imwrite(paths[-1], image, [cv2.IMWRITE_JPEG_QUALITY, 90])
    return paths


def normalize(image):
    """Returns float32 with the mean and the deviation of ImageNet taken out, from uint8."""
    return cv2.LUT(image, _TABLE)


def bare_training(path, rng):
    """Reads a photograph and augments it, by OpenCV alone; float32 `[224, 224, 3]`."""
    image = cv2.imread(path, cv2.IMREAD_COLOR)
    y, x, h, w = _random_part(*image.shape[:2], rng)
    image = cv2.resize(image[y : y + h, x : x + w], (SIZE, SIZE), interpolation=cv2.INTER_LINEAR)
    if rng.uniform() < 0.5:
        image = cv2.flip(image, 1)
    for step in rng.permutation(3):
        factor = rng.uniform(*JITTER)
        matrix = np.eye(3, 4) * factor  # of brightness
        if step == 1:  # contrast
            grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
            matrix[:, 3] = cv2.mean(grey)[0] * (1 - factor)
        elif step == 2:  # saturation
            matrix[:, :3] += (1 - factor) * GREY
        image = cv2.transform(image, matrix)
    return normalize(image)


def _random_part(rows, columns, rng):
    for _ in range(ATTEMPTS):
        area = rows * columns * rng.uniform(*AREA)
        ratio = math.exp(rng.uniform(*map(math.log, RATIO)))
        h, w = int(math.sqrt(area / ratio) + 0.5), int(math.sqrt(area * ratio) + 0.5)
        if 0 < h <= rows and 0 < w <= columns:
            return int(rng.uniform(0, rows - h + 1)), int(rng.uniform(0, columns - w + 1)), h, w
    edge = min(rows, columns)
    return (rows - edge) // 2, (columns - edge) // 2, edge, edge


def check(batch):
    """Looks at a batch of normalised images, arrays or tensors; the channels are first or last."""
    shape = tuple(batch.shape)
    if shape not in ((BATCH, SIZE, SIZE, 3), (BATCH, 3, SIZE, SIZE)):
        raise RuntimeError(f"The images have the shape {shape}.")
    if not -3 < float(batch[-1, -1, -1, -1]) < 3:
        raise RuntimeError("The images are not normalised.")
