"""TinyImageNet: 64 x 64 colour images of 200 classes, in the folders of its archive."""

import os
from typing import List, Sequence, Tuple

from ._files import DamagedFile, UnpackedDataset


class TinyImageNet(UnpackedDataset):
    """Yields `[image, label]`: uint8 `[64, 64, 3]` in BGR, and an int from 0 to 199.

    The folder is `tiny-imagenet-200`. Labels are in the order of `wnids.txt`. There are 100,000
    datapoints in "train" and 10,000 in "val"; those of "test" have no labels.
    """

    _URL = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"

    def _listed(self, name: str) -> Tuple[List[str], List[int]]:
        classes = self._lines("wnids.txt")
        labels = {synset: label for label, synset in enumerate(classes)}
        listed = self._train(classes) if name == "train" else self._val()
        unknown = sorted({synset for _, synset in listed} - set(labels))
        if unknown or not listed:
            raise DamagedFile(f"{self.dir} has {len(listed)} images; not in wnids.txt: {unknown}.")
        return [path for path, _ in listed], [labels[synset] for _, synset in listed]

    def _train(self, classes: Sequence[str]) -> List[Tuple[str, str]]:
        found = []
        for synset in classes:
            folder = os.path.join("train", synset, "images")
            names = sorted(os.listdir(self._existing(folder)))
            images = [os.path.join(folder, name) for name in names if name.endswith(".JPEG")]
            found += [(image, synset) for image in images]
        return found

    def _val(self) -> List[Tuple[str, str]]:
        lines = [line.split("\t") for line in self._lines("val/val_annotations.txt")]
        if min(map(len, lines)) < 2:
            raise DamagedFile(f"val_annotations.txt of {self.dir} has lines without a class.")
        return [(os.path.join("val", "images", name), synset) for name, synset, *_ in lines]
