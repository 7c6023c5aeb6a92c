"""Places365-Standard: photographs of 365 kinds of places, in folders, with lists of them."""

from typing import List, Tuple

from ._files import UnpackedDataset


class Places365Standard(UnpackedDataset):
    """Yields `[image, label]`: uint8 `[h, w, 3]` in BGR, and an int from 0 to 364.

    The folder is that of the archive `places365standard_easyformat.tar`, in which `train.txt` and
    `val.txt` have a line such as "train/airfield/00000001.jpg" for each image. Labels are in the
    order of the names of the classes. There are 1,803,460 datapoints in "train" and 36,500 in
    "val".
    """

    _URL = "http://data.csail.mit.edu/places/places365/places365standard_easyformat.tar"

    def _listed(self, name: str) -> Tuple[List[str], List[int]]:
        images = self._lines(f"{name}.txt")
        classes = [image.partition("/")[2].rpartition("/")[0] for image in images]
        self._names = sorted(set(classes))
        labels = {name: label for label, name in enumerate(self._names)}
        return images, [labels[name] for name in classes]

    def get_label_names(self) -> List[str]:
        """Returns the names of the classes, in the order of the labels."""
        return list(self._names)
