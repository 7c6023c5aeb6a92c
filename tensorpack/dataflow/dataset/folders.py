"""Datasets of image files in the folders of their archives, with lists of them."""

import os
from pathlib import Path
from typing import Callable, List, Optional, Tuple

from ..files.images import ImageRecords
from ..files.records import PathLike
from ..raw import DataFromList
from ._files import check_split


class _UnpackedDataset(DataFromList):
    """A dataset of image files in a folder, which has to be unpacked."""

    _URL = ""  # of the archive
    # Returns the paths of the images of a part, below the folder, with their labels.
    _list_images: Callable[[str], List[Tuple[str, int]]]

    def __init__(self, dir: PathLike, name: str, shuffle: Optional[bool] = None) -> None:
        """Takes the folder, "train" or "val", and whether each pass has its own order."""
        check_split(name, ("train", "val"))
        self.dir = os.path.abspath(dir)
        images = self._list_images(name)
        files, labels = [os.path.join(self.dir, file) for file, _ in images], [i for _, i in images]
        records = ImageRecords(files, labels, bgr=True)
        super().__init__(records, name == "train" if shuffle is None else shuffle)

    def _lines(self, name: str) -> List[str]:
        path = Path(self.dir, name)
        if not path.exists():
            raise FileNotFoundError(
                f"{type(self).__name__} needs {path}: download {self._URL}, unpack it, and give "
                "its folder."
            )
        return path.read_text("utf-8").splitlines()


class Places365Standard(_UnpackedDataset):
    """Places365-Standard: photographs of 365 kinds of places.

    Yields `[image, label]`: uint8 `[h, w, 3]` in BGR, and an int from 0 to 364.

    The folder is that of the archive `places365standard_easyformat.tar`, in which `train.txt` and
    `val.txt` have a line such as "train/airfield/00000001.jpg" for each image. Labels are in the
    order of the names of the classes. There are 1,803,460 datapoints in "train" and 36,500 in
    "val".
    """

    _URL = "http://data.csail.mit.edu/places/places365/places365standard_easyformat.tar"

    def _list_images(self, name: str) -> List[Tuple[str, int]]:
        files = self._lines(f"{name}.txt")
        classes = [file.partition("/")[2].rpartition("/")[0] for file in files]
        self._names = sorted(set(classes))
        labels = {name: label for label, name in enumerate(self._names)}
        return [(file, labels[name]) for file, name in zip(files, classes)]

    def get_label_names(self) -> List[str]:
        """Returns the names of the classes, in the order of the labels."""
        return list(self._names)


class TinyImageNet(_UnpackedDataset):
    """Tiny ImageNet. Yields `[image, label]`: uint8 `[64, 64, 3]` in BGR, and an int from 0 to 199.

    The folder is `tiny-imagenet-200`. Labels are in the order of `wnids.txt`. There are 100,000
    datapoints in "train" and 10,000 in "val"; those of "test" have no labels.
    """

    _URL = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"

    def _list_images(self, name: str) -> List[Tuple[str, int]]:
        labels = {synset: label for label, synset in enumerate(self._lines("wnids.txt"))}
        if name == "val":
            lines = [line.split("\t") for line in self._lines("val/val_annotations.txt")]
            return [(f"val/images/{line[0]}", labels[line[1]]) for line in lines]
        images = []
        for synset, label in labels.items():
            folder = f"train/{synset}/images"
            files = sorted(os.listdir(os.path.join(self.dir, folder)))
            images += [(f"{folder}/{file}", label) for file in files if file.endswith(".JPEG")]
        return images
