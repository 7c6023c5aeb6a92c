"""R11: photographs decoded, augmented and batched: the usual pipelines of ImageNet, in images/s."""

import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np
from _contest import Contest
from _programs import HERE, rate_of

sys.path.insert(0, str(HERE / "peers"))

import _images
from _clock import per_second

import tensorpack.dataflow as df

PEERS = ("torchvision", "torchvision-tensors", "albumentations", "grain")
BARE = {"training": _images.bare_training, "inference": _images.bare_inference}
SYNSET = "n01440764"


def photographs(seconds=2.5, kinds=_images.KINDS, counts=(1, 2)):
    """Photographs read, augmented and batched, for training and for inference.

    In one process against a loop over the same calls of OpenCV, and from worker processes against
    other libraries.
    """
    cv2.setNumThreads(0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        paths = write_imagenet(folder)
        for kind in kinds:
            yield Contest(
                f"images for {kind}, in one process / bare OpenCV calls",
                {
                    "run": lambda kind=kind: ours(kind, folder, 0, seconds),
                    "bare": lambda kind=kind: bare(kind, paths, seconds),
                },
                unit="/s",
                target=">= 0.9",
            )
            for count in counts:
                flags = ["--folder", folder / "train" / SYNSET, "--kind", kind]
                flags += ["--processes", count, "--seconds", seconds]
                name = f"{count} process{'es' if count > 1 else ''}"
                yield Contest(
                    f"images for {kind}, {name} / the best peer",
                    {"run": lambda kind=kind, count=count: ours(kind, folder, count, seconds)},
                    {each: peer(each, flags) for each in PEERS},
                    unit="/s",
                    target=">= 1",
                )


def peer(library, flags):
    """What measures another library."""
    script = "image_loaders.py"
    return lambda: rate_of(script, "--library", library, *flags, peer="images")


def ours(kind, folder, processes, seconds):
    """Images per second of this project, in this process if `processes` is 0."""
    if processes:
        files = df.RepeatedData(df.dataset.ILSVRC12Files(folder, "train", meta_dir=folder), -1)
        flow = df.MultiProcessMapAndBatchData(files, processes, ReadAndAugment(kind), _images.BATCH)
    else:
        photographs = df.RepeatedData(df.dataset.ILSVRC12(folder, "train", meta_dir=folder), -1)
        flow = df.BatchData(df.AugmentImageComponent(photographs, augmentors(kind)), _images.BATCH)
    flow.reset_state()
    try:
        return images_per_second((images for images, _ in flow), seconds)
    finally:
        flow.close()


def bare(kind, paths, seconds):
    """Images per second of a loop over the calls of OpenCV, in this process."""
    rng = np.random.RandomState(0)

    def batches():
        while True:
            yield np.stack(
                [BARE[kind](paths[i], rng) for i in rng.randint(len(paths), size=_images.BATCH)]
            )

    return images_per_second(batches(), seconds)


def images_per_second(batches, seconds):
    """Of an endless iterator of batches."""
    return per_second(batches, seconds, _images.BATCH, _images.check, _images.WARM_UP)


def augmentors(kind):
    """What is done to a photograph."""
    last = df.imgaug.MapImage(_images.normalize)
    if kind == "inference":
        return [
            df.imgaug.ResizeShortestEdge(_images.SHORTEST),
            df.imgaug.CenterCrop(_images.SIZE),
            last,
        ]
    jitter = [
        df.imgaug.BrightnessScale(_images.JITTER),
        df.imgaug.Contrast(_images.JITTER, rgb=False),
        df.imgaug.Saturation(_images.JITTER[1] - 1, rgb=False),
    ]
    crop = df.imgaug.GoogleNetRandomCropAndResize(target_shape=_images.SIZE)
    return [crop, df.imgaug.Flip(horiz=True), df.imgaug.RandomOrderAug(jitter), last]


def write_imagenet(folder):
    """Writes photographs, and lists of them as those of ImageNet; returns their paths."""
    paths = _images.write_photographs(folder / "train" / SYNSET)
    lines = [f"{SYNSET}/{Path(path).name} 0\n" for path in paths]
    (folder / "train.txt").write_text("".join(lines), encoding="utf-8")
    (folder / "synsets.txt").write_text(f"{SYNSET}\n", encoding="utf-8")
    return paths


class ReadAndAugment:
    """Makes `[image, label]` of `[path, label]`, in a process of its own."""

    def __init__(self, kind):
        self._augmentors = df.imgaug.AugmentorList(augmentors(kind))

    def __call__(self, datapoint):
        path, label = datapoint
        return [self._augmentors.augment(cv2.imread(path, cv2.IMREAD_COLOR)), label]
