"""Places365-Standard: photographs of 365 kinds of places, in folders, with lists of them."""

import os
from typing import List, Optional

from ..files.images import ImageRecords
from ..files.records import DamagedFile, PathLike, RecordsFlow
from ._files import check_split, read_file

__all__ = ["Places365Standard"]

_URL = "http://data.csail.mit.edu/places/places365/places365standard_easyformat.tar"


class Places365Standard(RecordsFlow):
    """Yields `[image, label]`: uint8 `[h, w, 3]` in BGR, and an int from 0 to 364.

    The folder is that of the archive `places365standard_easyformat.tar`. Labels are in the order
    of the names of the classes. There are 1,803,460 datapoints in "train" and 36,500 in "val".
    """

    def __init__(
        self, dir: PathLike, name: str, shuffle: Optional[bool] = None, *, max_errors: int = 0
    ) -> None:
        """
        Args:
          dir: the unpacked folder, in which `train.txt` and `val.txt` have a line such as
            "train/airfield/00000001.jpg" for each image.
          name: "train" or "val".
          shuffle: whether each pass has its own order; None for "train" only.
          max_errors: how many images that cannot be read a pass skips, each with a warning in the
            log; one more is an error. `len` counts them.
        """
        check_split(name, ("train", "val"))
        self.dir = os.path.abspath(dir)
        path = os.path.join(self.dir, f"{name}.txt")
        if not os.path.isfile(path):
            raise FileNotFoundError(
                f"Places365Standard needs {path}: download {_URL}, unpack it, and give its folder."
            )
        lines = read_file(path).decode("utf-8", "replace").splitlines()
        images = [line.strip() for line in lines if line.strip()]
        if not images or any(image.count("/") < 2 for image in images):
            raise DamagedFile(f"{path} has no lines such as 'train/airfield/00000001.jpg'.")
        classes = [image.split("/", 1)[1].rpartition("/")[0] for image in images]
        self._names = sorted(set(classes))
        labels = {each: label for label, each in enumerate(self._names)}
        files = [os.path.join(self.dir, image) for image in images]
        records = ImageRecords(files, [labels[each] for each in classes], bgr=True)
        super().__init__(records, name == "train" if shuffle is None else shuffle, max_errors)

    def get_label_names(self) -> List[str]:
        """Returns the names of the classes, in the order of the labels."""
        return list(self._names)
