"""R11: photographs decoded, augmented and batched, against other libraries and bare OpenCV.

    python benchmarks/r11_images.py [--pairs 5] [--kinds training,inference]

The usual pipelines of ImageNet, in images per second. Needs `make bench-peers`.
"""

import argparse
import os
import re
import statistics
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

from _images import (
    BATCH,
    JITTER,
    KINDS,
    SHORTEST,
    SIZE,
    bare_inference,
    bare_training,
    images_per_second,
    normalize,
    write_photographs,
)
from _programs import output_of, peer_python
from _report import Measured, alternate, report, say

from tensorpack.dataflow import (
    AugmentImageComponent,
    BatchData,
    MultiProcessMapAndBatchData,
    RepeatedData,
    dataset,
    imgaug,
)

HERE = Path(__file__).resolve().parent
RATE = re.compile(r"images/s: ([0-9.]+)")
PEERS = ("torchvision", "torchvision-tensors", "albumentations", "grain")
PROCESSES = (1, 2)
BARE = {"training": bare_training, "inference": bare_inference}
SYNSET = "n01440764"


def augmentors(kind):
    """What is done to a photograph."""
    last = imgaug.MapImage(normalize)
    if kind == "inference":
        return [imgaug.ResizeShortestEdge(SHORTEST), imgaug.CenterCrop(SIZE), last]
    jitter = [
        imgaug.BrightnessScale(JITTER),
        imgaug.Contrast(JITTER, rgb=False),
        imgaug.Saturation(JITTER[1] - 1, rgb=False),
    ]
    crop = imgaug.GoogleNetRandomCropAndResize(target_shape=SIZE)
    return [crop, imgaug.Flip(horiz=True), imgaug.RandomOrderAug(jitter), last]


def write_imagenet(folder):
    """Writes photographs, and lists of them as those of ImageNet; returns their paths."""
    paths = write_photographs(folder / "train" / SYNSET)
    lines = [f"{SYNSET}/{Path(path).name} 0\n" for path in paths]
    (folder / "train.txt").write_text("".join(lines), encoding="utf-8")
    (folder / "synset_words.txt").write_text(f"{SYNSET} tench\n", encoding="utf-8")
    return paths


class ReadAndAugment:
    """Makes `[image, label]` of `[path, label]`, in a process of its own."""

    def __init__(self, kind):
        self._augmentors = imgaug.AugmentorList(augmentors(kind))

    def __call__(self, datapoint):
        path, label = datapoint
        return [self._augmentors.augment(cv2.imread(path, cv2.IMREAD_COLOR)), label]


def ours(kind, folder, processes, seconds):
    """Images per second of this project, in this process if `processes` is 0."""
    if processes:
        files = RepeatedData(dataset.ILSVRC12Files(folder, "train", meta_dir=folder), -1)
        flow = MultiProcessMapAndBatchData(files, processes, ReadAndAugment(kind), BATCH)
    else:
        photographs = RepeatedData(dataset.ILSVRC12(folder, "train", meta_dir=folder), -1)
        flow = BatchData(AugmentImageComponent(photographs, augmentors(kind)), BATCH)
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
            yield np.stack([BARE[kind](paths[i], rng) for i in rng.randint(len(paths), size=BATCH)])

    return images_per_second(batches(), seconds)


def peer(library, kind, folder, processes, seconds):
    """Images per second of another library."""
    options = {"library": library, "kind": kind, "processes": processes}
    options["folder"] = folder / "train" / SYNSET
    arguments = [word for name, value in options.items() for word in (f"--{name}", value)]
    script = HERE / "peers" / "image_loaders.py"
    python = peer_python("images")
    text = output_of(script, *arguments, "--seconds", seconds, python=python)
    return float(RATE.search(text).group(1))


def against_peers(kind, folder, processes, rounds, seconds):
    """Prints a row a round; returns what is reported."""
    rates = {name: [] for name in ("run", *PEERS)}
    for number in range(rounds):
        rates["run"].append(ours(kind, folder, processes, seconds))
        for name in PEERS:
            rates[name].append(peer(name, kind, folder, processes, seconds))
        row = ", ".join(f"{name} {column[-1]:.0f}" for name, column in rates.items())
        say(f"{kind} x{processes} {number}: {row} images/s (load {os.getloadavg()[0]:.1f})")
    mine, *others = rates.values()
    ratio = statistics.median(own / max(theirs) for own, *theirs in zip(mine, *others))
    held = ", ".join(f"{name} {statistics.median(rate):.0f}/s" for name, rate in rates.items())
    plural = "es" if processes > 1 else ""
    what = f"images for {kind}, {processes} process{plural} / the best peer"
    return Measured("R11", what, ratio, "", ">= 1", held)


def main():
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.5)
    parser.add_argument("--kinds", default=",".join(KINDS), help="some of %(default)s")
    args = parser.parse_args()
    cv2.setNumThreads(0)
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = write_imagenet(folder)
        for kind in args.kinds.split(","):
            run, calls, ratio = alternate(
                ("run", lambda kind=kind: ours(kind, folder, 0, args.seconds)),
                ("bare", lambda kind=kind: bare(kind, paths, args.seconds)),
                args.pairs,
                "images/s",
            )
            held = f"run {run:.0f}/s, bare {calls:.0f}/s"
            what = f"images for {kind}, in one process / bare OpenCV calls"
            found.append(Measured("R11", what, ratio, "", ">= 0.9", held))
            for processes in PROCESSES:
                found.append(against_peers(kind, folder, processes, args.pairs, args.seconds))
    report(*found)


if __name__ == "__main__":
    main()
