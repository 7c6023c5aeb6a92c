"""TinyImageNet: 64 x 64 colour images of 200 classes, in the folders of its archive."""

import os
from typing import List, Tuple

from ._files import UnpackedDataset


class TinyImageNet(UnpackedDataset):
    """Yields `[image, label]`: uint8 `[64, 64, 3]` in BGR, and an int from 0 to 199.

    The folder is `tiny-imagenet-200`. Labels are in the order of `wnids.txt`. There are 100,000
    datapoints in "train" and 10,000 in "val"; those of "test" have no labels.
    """

    _URL = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"

    def _listed(self, name: str) -> Tuple[List[str], List[int]]:
        labels = {synset: label for label, synset in enumerate(self._lines("wnids.txt"))}
        if name == "val":
            lines = [line.split("\t") for line in self._lines("val/val_annotations.txt")]
            return [f"val/images/{line[0]}" for line in lines], [labels[line[1]] for line in lines]
        listed = []
        for synset, label in labels.items():
            folder = f"train/{synset}/images"
            names = sorted(os.listdir(os.path.join(self.dir, folder)))
            listed += [(f"{folder}/{file}", label) for file in names if file.endswith(".JPEG")]
        return [path for path, _ in listed], [label for _, label in listed]
