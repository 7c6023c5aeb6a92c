"""The lists, names and mean image of ILSVRC12, from the archive that Caffe's tools use.

Nothing is unpacked. In the archive, `synset_words.txt` has a line for each class, `train.txt`,
`val.txt` and `test.txt` have a line `path label` for each image, and `imagenet_mean.binaryproto`
is a message `BlobProto` of Caffe.
"""

import os
import re
from typing import Dict, List, Optional, Tuple

import numpy as np

from tensorpack.utils import logger, shape2d
from tensorpack.utils.fs import get_dataset_path
from tensorpack.utils.old_values import BadRecord
from tensorpack.utils.optional import require

from ..files.caffe import message_fields
from ..files.records import DamagedFile, PathLike
from ._files import check_split, find_files, read_file, read_members

PARTS = ("train", "val", "test")
STRUCTURES = ("original", "train")

_URL = (
    "http://dl.caffe.berkeleyvision.org/caffe_ilsvrc12.tar.gz",
    "e35c0c1994a21f7d8ed49d01881ce17ab766743d3b0372cdc0183ff4d0dfc491",
)
_SYNSETS, _MEAN = "synset_words.txt", "imagenet_mean.binaryproto"
_MEMBERS = (_SYNSETS, _MEAN, *(f"{part}.txt" for part in PARTS))
_MEAN_SHAPE = (3, 256, 256)
_DATA = 5  # the number of the field in a BlobProto
_SYNSET = re.compile(r"n\d{8}\Z")


class ILSVRCMeta:
    """What is known of the images and classes of ILSVRC12.

    The files are read from a folder: each as it lies there or in `caffe_ilsvrc12`, or else from
    `caffe_ilsvrc12.tar.gz`.
    """

    def __init__(self, dir: Optional[PathLike] = None, *, download: bool = False) -> None:
        """
        Args:
          dir: the folder; by default `ilsvrc_metadata` in $TENSORPACK_DATASET.
          download: whether to download a missing archive.
        """
        self.dir = os.fspath(get_dataset_path("ilsvrc_metadata") if dir is None else dir)
        self._download = download
        self._archive: Optional[Tuple[str, Dict[str, bytes]]] = None  # its path and its files

    def get_synset_words_1000(self) -> Dict[int, str]:
        """Returns the line of each class, such as "n01440764 tench, Tinca tinca", by its label.

        This and the other methods raise FileNotFoundError if a file is missing, OSError if it
        cannot be downloaded, ValueError if it is damaged.
        """
        lines = self._lines(_SYNSETS)
        if any(_SYNSET.match(line.split()[0]) is None for line in lines):
            raise DamagedFile(f"Lines of synset_words.txt of {self.dir} begin with no class.")
        return dict(enumerate(lines))

    def get_synset_1000(self) -> Dict[int, str]:
        """Returns the name of the folder of each class, such as "n01440764", by its label."""
        if self._unpacked("synsets.txt"):
            return dict(enumerate(self._lines("synsets.txt")))
        words = self.get_synset_words_1000()
        return {label: line.split()[0] for label, line in words.items()}

    def get_image_list(self, name: str, dir_structure: str = "original") -> List[Tuple[str, int]]:
        """Returns the path of each image, below the folder of its part, and its label from 0.

        Args:
          name: "train", "val" or "test", where the label means nothing.
          dir_structure: "original" if the images of "val" and "test" are in one folder, "train" if
            they are in a folder for each class, as those of "train" always are.
        """
        check_split(name, PARTS)
        if dir_structure not in STRUCTURES:
            raise ValueError(f"dir_structure is one of {STRUCTURES}, but got {dir_structure!r}.")
        synsets = self.get_synset_1000()
        images = []
        for line in self._lines(f"{name}.txt"):
            path, _, number = line.rpartition(" ")
            if not path or not number.isdigit() or int(number) not in synsets:
                raise DamagedFile(f"{name}.txt of {self.dir} has the line {line[:80]!r}.")
            label = int(number)
            if name != "train" and dir_structure == "train":
                path = f"{synsets[label]}/{path}"
            images.append((path, label))
        return images

    def get_per_pixel_mean(self, size: Optional[Tuple[int, int]] = None) -> np.ndarray:
        """Returns the mean of the training images, float32 `[256, 256, 3]` in BGR from 0 to 255.

        Args:
          size: (height, width) to resize it to, which needs OpenCV.
        """
        name = _MEAN
        try:
            fields = message_fields(self._read(name))
            content = b"".join(each for number, _, each in fields if number == _DATA)
            mean = np.frombuffer(content, "<f4").reshape(_MEAN_SHAPE)
        except (BadRecord, TypeError, ValueError) as error:
            raise DamagedFile(f"{name} of {self.dir} is not the mean image: {error}") from error
        mean = np.ascontiguousarray(mean.transpose(1, 2, 0), np.float32)
        if size is None:
            return mean
        height, width = shape2d(size)
        return require("cv2").resize(mean, (width, height))

    @staticmethod
    def guess_dir_structure(dir: PathLike) -> str:
        """Returns "train" if a folder has a folder for a class in it, "original" otherwise."""
        has_classes = any(_SYNSET.match(name) for name in os.listdir(dir))
        structure = "train" if has_classes else "original"
        logger.info("%s", f"[ILSVRC12] Assuming directory {dir} has '{structure}' structure.")
        return structure

    def _lines(self, name: str) -> List[str]:
        lines = self._read(name).decode("utf-8", "replace").splitlines()
        lines = [line.strip() for line in lines if line.strip()]
        if not lines:
            raise DamagedFile(f"{name} of {self.dir} is empty.")
        return lines

    def _unpacked(self, name: str) -> Optional[str]:
        """Returns the path of a file that lies in the folder, or in that of the archive's name."""
        paths = [os.path.join(self.dir, part, name) for part in ("", "caffe_ilsvrc12")]
        return next(filter(os.path.isfile, paths), None)

    def _read(self, name: str) -> bytes:
        """Returns the content of a file, from the archive if it does not lie beside it."""
        path = self._unpacked(name)
        if path is not None:
            return read_file(path)
        if self._archive is None:
            (path,) = find_files("ILSVRCMeta", self.dir, dict([_URL]), self._download)
            self._archive = path, read_members(path, _MEMBERS.__contains__)
        path, contents = self._archive
        if name not in contents:
            raise DamagedFile(f"{path} has no {name}.")
        return contents[name]
