"""R11: photographs decoded, augmented and batched for training on ImageNet, in images/s."""

import tempfile
from functools import partial
from pathlib import Path

import _images
import cv2
import numpy as np
from _clock import per_second
from _contest import Contest
from _programs import rate_of

import tensorpack.dataflow as df

PEERS = ("torchvision", "albumentations", "grain")
SYNSET = "n01440764"


def photographs(seconds=2.5, counts=(1, 2)):
    """Photographs read, augmented and batched, as for training.

    In one process against a loop over the same calls of OpenCV, and from worker processes against
    other libraries.
    """
    cv2.setNumThreads(0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        paths = write_imagenet(folder)
        yield Contest(
            "images for training, in one process / bare OpenCV calls",
            {"run": partial(ours, folder, 0, seconds), "bare": partial(bare, paths, seconds)},
            unit="/s",
            target=">= 0.9",
        )
        for count in counts:
            flags = ["--folder", folder / "train" / SYNSET]
            flags += ["--processes", count, "--seconds", seconds, "--library"]
            yield Contest(
                f"images for training, {count} process{'es' if count > 1 else ''} / the best peer",
                {"run": partial(ours, folder, count, seconds)},
                {
                    name: partial(rate_of, "image_loaders.py", *flags, name, peer="images")
                    for name in PEERS
                },
                unit="/s",
                target=">= 1",
            )


def ours(folder, processes, seconds):
    """Images per second of this project, in this process if `processes` is 0."""
    if processes:
        files = df.RepeatedData(df.dataset.ILSVRC12Files(folder, "train", meta_dir=folder), -1)
        flow = df.MultiProcessMapAndBatchData(files, processes, read_and_augment, _images.BATCH)
    else:
        photographs = df.RepeatedData(df.dataset.ILSVRC12(folder, "train", meta_dir=folder), -1)
        flow = df.BatchData(
            df.AugmentImageComponent(photographs, AUGMENTORS.augmentors), _images.BATCH
        )
    flow.reset_state()
    try:
        return images_per_second((images for images, _ in flow), seconds)
    finally:
        flow.close()


def bare(paths, seconds):
    """Images per second of a loop over the calls of OpenCV, in this process."""
    rng = np.random.RandomState(0)

    def batches():
        while True:
            batch = [paths[i] for i in rng.randint(len(paths), size=_images.BATCH)]
            yield np.stack([_images.bare_training(path, rng) for path in batch])

    return images_per_second(batches(), seconds)


def images_per_second(batches, seconds):
    """Of an endless iterator of batches."""
    return per_second(batches, seconds, _images.BATCH, _images.check, _images.WARM_UP)


def write_imagenet(folder):
    """Writes photographs, and lists of them as those of ImageNet; returns their paths."""
    paths = _images.write_photographs(folder / "train" / SYNSET)
    lines = [f"{SYNSET}/{Path(path).name} 0\n" for path in paths]
    (folder / "train.txt").write_text("".join(lines), encoding="utf-8")
    (folder / "synsets.txt").write_text(f"{SYNSET}\n", encoding="utf-8")
    return paths


AUGMENTORS = df.imgaug.AugmentorList(
    [
        df.imgaug.GoogleNetRandomCropAndResize(target_shape=_images.SIZE),
        df.imgaug.Flip(horiz=True),
        df.imgaug.RandomOrderAug(
            [
                df.imgaug.BrightnessScale(_images.JITTER),
                df.imgaug.Contrast(_images.JITTER, rgb=False),
                df.imgaug.Saturation(_images.JITTER[1] - 1, rgb=False),
            ]
        ),
        df.imgaug.MapImage(_images.normalize),
    ]
)


def read_and_augment(datapoint):
    """Makes `[image, label]` of `[path, label]`, in a worker process."""
    path, label = datapoint
    return [AUGMENTORS.augment(cv2.imread(path, cv2.IMREAD_COLOR)), label]
