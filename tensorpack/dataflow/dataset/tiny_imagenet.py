"""TinyImageNet: 64 x 64 colour images of 200 classes, in the folders of its archive."""

import os
from typing import List, Optional, Sequence, Tuple

from ..files.images import ImageRecords
from ..files.records import DamagedFile, PathLike, RecordsFlow
from ._files import check_split, read_file

_URL = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"


class TinyImageNet(RecordsFlow):
    """Yields `[image, label]`: uint8 `[64, 64, 3]` in BGR, and an int from 0 to 199.

    Labels are in the order of `wnids.txt`. There are 100,000 datapoints in "train" and 10,000 in
    "val"; those of "test" have no labels.
    """

    def __init__(
        self, dir: PathLike, name: str, shuffle: Optional[bool] = None, *, max_errors: int = 0
    ) -> None:
        """
        Args:
          dir: the unpacked folder `tiny-imagenet-200`.
          name: "train" or "val".
          shuffle: whether each pass has its own order; None for "train" only.
          max_errors: as in `ILSVRC12`.
        """
        check_split(name, ("train", "val"))
        self.dir = os.path.abspath(dir)
        classes = [line.strip() for line in self._lines("wnids.txt")]
        labels = {synset: label for label, synset in enumerate(classes)}
        listed = self._train(classes) if name == "train" else self._val()
        unknown = sorted({synset for _, synset in listed} - set(labels))
        if unknown or not listed:
            raise DamagedFile(f"{self.dir} has {len(listed)} images; not in wnids.txt: {unknown}.")
        files = [os.path.join(self.dir, name, path) for path, _ in listed]
        records = ImageRecords(files, [labels[synset] for _, synset in listed], bgr=True)
        super().__init__(records, name == "train" if shuffle is None else shuffle, max_errors)

    def _train(self, classes: Sequence[str]) -> List[Tuple[str, str]]:
        found = []
        for synset in classes:
            folder = os.path.join(synset, "images")
            there = self._existing(os.path.join("train", folder))
            names = sorted(name for name in os.listdir(there) if name.endswith(".JPEG"))
            found += [(os.path.join(folder, name), synset) for name in names]
        return found

    def _val(self) -> List[Tuple[str, str]]:
        lines = [line.split("\t") for line in self._lines("val", "val_annotations.txt")]
        if min(map(len, lines)) < 2:
            raise DamagedFile(f"val_annotations.txt of {self.dir} has lines without a class.")
        return [(os.path.join("images", name), synset) for name, synset, *_ in lines]

    def _lines(self, *names: str) -> List[str]:
        path = self._existing(os.path.join(*names))
        lines = [line for line in read_file(path).decode("utf-8", "replace").splitlines() if line]
        if not lines:
            raise DamagedFile(f"{path} is empty.")
        return lines

    def _existing(self, name: str) -> str:
        path = os.path.join(self.dir, name)
        if not os.path.exists(path):
            raise FileNotFoundError(
                f"TinyImageNet needs {path}: download {_URL}, unpack it, and give the folder "
                "tiny-imagenet-200."
            )
        return path
