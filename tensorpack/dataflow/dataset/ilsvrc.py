"""ILSVRC12, known as ImageNet: images in folders, with lists of labels and XML files of boxes.

The lists are in the archive that Caffe's tools use: `synsets.txt` and `synset_words.txt` have a
line for each class, `train.txt`, `val.txt` and `test.txt` a line `path label` for each image, and
`imagenet_mean.binaryproto` is a message `BlobProto` of Caffe.
"""

import os
import re
import xml.etree.ElementTree
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils import logger, shape2d
from tensorpack.utils.fs import get_dataset_path
from tensorpack.utils.optional import require

from ..files.caffe import message_fields
from ..files.images import ImageRecords
from ..files.records import DamagedFile, PathLike, RecordsFlow
from . import _files
from ._files import Folder

_PARTS = ("train", "val", "test")
_ARCHIVE = {  # and its SHA-256
    "http://dl.caffe.berkeleyvision.org/caffe_ilsvrc12.tar.gz": (
        "e35c0c1994a21f7d8ed49d01881ce17ab766743d3b0372cdc0183ff4d0dfc491"
    )
}
_SYNSET = re.compile(r"n\d{8}\Z")


class ILSVRC12Files(RecordsFlow):
    """Yields `[path, label]` for the images of ILSVRC12; the label is an int from 0 to 999.

    The folder looks like this, with the folder of each class in "val", too, where `dir_structure`
    is "train"::

        train/n02134418/n02134418_198.JPEG
        val/ILSVRC2012_val_00000001.JPEG
        test/ILSVRC2012_test_00000001.JPEG
        bbox/n02134418/n02134418_198.xml
    """

    def __init__(
        self,
        dir: PathLike,
        name: str,
        meta_dir: Folder = None,
        shuffle: Optional[bool] = None,
        dir_structure: Optional[str] = None,
        *,
        download: bool = False,
    ) -> None:
        """
        Args:
          dir: the folder.
          name: "train", "val" or "test", whose labels mean nothing.
          meta_dir, download: of `ILSVRCMeta`; images are never downloaded.
          shuffle: whether each pass has its own order; None for "train" only.
          dir_structure: "original" or "train", see `ILSVRCMeta.get_image_list`; None to look.
        """
        root = os.path.abspath(os.path.join(dir, name))
        meta = ILSVRCMeta(meta_dir, download=download)
        if dir_structure is None:
            is_train = name == "train" or not os.path.isdir(root)
            dir_structure = "train" if is_train else meta.guess_dir_structure(root)
        self.imglist = meta.get_image_list(name, dir_structure)
        files: List[Any] = [[os.path.join(root, path), label] for path, label in self.imglist]
        if not os.path.exists(files[0][0]):
            raise FileNotFoundError(
                f"There is no {files[0][0]}, the first image of the part {name!r} with "
                f"dir_structure={dir_structure!r}. Unpack the images of https://image-net.org/ "
                "there, or pass another dir_structure."
            )
        super().__init__(files, name == "train" if shuffle is None else shuffle)


class ILSVRC12(ILSVRC12Files):
    """Yields `[image, label]`: uint8 `[h, w, 3]` in BGR, and an int from 0 to 999.

    Images that are grey have three equal channels. For the folders see `ILSVRC12Files`.
    """

    def __init__(
        self,
        dir: PathLike,
        name: str,
        meta_dir: Folder = None,
        shuffle: Optional[bool] = None,
        dir_structure: Optional[str] = None,
        include_bb: Union[bool, PathLike] = False,
        *,
        download: bool = False,
        max_errors: int = 0,
    ) -> None:
        """
        Args:
          dir, name, meta_dir, shuffle, dir_structure, download: see `ILSVRC12Files`.
          include_bb: True to yield `[image, label, box]` for "train", with the first box of the
            image in `dir/bbox`, as from `get_training_bbox`, or (0, 0, w, h) if it has none. A path
            is another folder of boxes.
          max_errors: how many images that cannot be read a pass skips, see `RecordsFlow`.
        """
        super().__init__(dir, name, meta_dir, shuffle, dir_structure, download=download)
        files, labels = map(list, zip(*self.lst))
        self.lst, self.max_errors = ImageRecords(files, labels, bgr=True), max_errors
        if include_bb:
            if name != "train":
                raise ValueError(f"Only the part 'train' has boxes, but name is {name!r}.")
            folder = os.path.join(dir, "bbox") if include_bb is True else include_bb
            boxes = self.get_training_bbox(folder, self.imglist)
            self.lst = _WithBoxes(files, list(zip(labels, boxes)), bgr=True)

    @staticmethod
    def get_training_bbox(
        bbox_dir: PathLike, imglist: Sequence[Tuple[str, int]]
    ) -> List[Optional[np.ndarray]]:
        """Returns the first box of each image, float32 (x1, y1, x2, y2) in pixels; None without.

        In the folder, `n02134418/n02134418_198.xml` belongs to the JPEG of this name; `imglist` is
        that of `ILSVRCMeta.get_image_list("train")`.
        """
        if not os.path.isdir(bbox_dir):
            raise NotADirectoryError(f"There is no folder {bbox_dir} with boxes.")
        paths = [os.path.join(bbox_dir, os.path.splitext(name)[0] + ".xml") for name, _ in imglist]
        return [_read_box(path) if os.path.isfile(path) else None for path in paths]


class ILSVRCMeta:
    """What is known of the images and classes of ILSVRC12.

    The files are in a folder, by default `ilsvrc_metadata` in $TENSORPACK_DATASET. If one is not,
    `caffe_ilsvrc12.tar.gz` is unpacked there, which is downloaded if `download` is set.
    """

    def __init__(self, dir: Folder = None, *, download: bool = False) -> None:
        self.dir = os.fsdecode(get_dataset_path("ilsvrc_metadata") if dir is None else dir)
        self._download = download

    def get_synset_words_1000(self) -> Dict[int, str]:
        """Returns the line of each class, such as "n01440764 tench, Tinca tinca", by its label."""
        return dict(enumerate(self._lines("synset_words.txt")))

    def get_synset_1000(self) -> Dict[int, str]:
        """Returns the name of the folder of each class, such as "n01440764", by its label."""
        return dict(enumerate(self._lines("synsets.txt")))

    def get_image_list(self, name: str, dir_structure: str = "original") -> List[Tuple[str, int]]:
        """Returns the path of each image, below the folder of its part, and its label from 0.

        Args:
          name: "train", "val" or "test", where the label means nothing.
          dir_structure: "original" if the images of "val" and "test" are in one folder, "train" if
            they are in a folder for each class, as those of "train" always are.
        """
        _files.check_split(name, _PARTS)
        pairs = (line.split() for line in self._lines(f"{name}.txt"))
        images = [(path, int(label)) for path, label in pairs]
        if name == "train" or dir_structure == "original":
            return images
        synsets = self.get_synset_1000()
        return [(f"{synsets[label]}/{path}", label) for path, label in images]

    def get_per_pixel_mean(self, size: Optional[Tuple[int, int]] = None) -> np.ndarray:
        """Returns the mean of the training images, float32 `[256, 256, 3]` in BGR from 0 to 255.

        `size` is (height, width) to resize it to, which needs OpenCV.
        """
        fields = message_fields(self._path_of("imagenet_mean.binaryproto").read_bytes())
        content = b"".join(value for number, value in fields if number == 5)  # the data
        mean = np.frombuffer(content, "<f4").reshape(3, 256, 256).transpose(1, 2, 0)
        mean = np.ascontiguousarray(mean, np.float32)
        return mean if size is None else require("cv2").resize(mean, shape2d(size)[::-1])

    @staticmethod
    def guess_dir_structure(dir: PathLike) -> str:
        """Returns "train" if a folder has a folder for a class in it, "original" otherwise."""
        has_classes = any(_SYNSET.match(name) for name in os.listdir(dir))
        structure = "train" if has_classes else "original"
        logger.info("%s", f"[ILSVRC12] Assuming directory {dir} has '{structure}' structure.")
        return structure

    def _lines(self, name: str) -> List[str]:
        return self._path_of(name).read_text("utf-8").splitlines()

    def _path_of(self, name: str) -> Path:
        path = Path(self.dir, name)
        if not path.is_file():
            _files.unpack(*_files.find_files("ILSVRCMeta", self.dir, _ARCHIVE, self._download))
        return path


class _WithBoxes(ImageRecords):
    """The datapoints `[image, label, box]` by index; the labels are pairs of a label and a box."""

    def __getitem__(self, index: int) -> List[Any]:
        image, (label, box) = super().__getitem__(index)
        whole = np.array([0, 0, *image.shape[1::-1]], np.float32)
        return [image, label, whole if box is None else box.copy()]


def _read_box(path: str) -> Optional[np.ndarray]:
    """Returns the first box in an XML file, float32 (x1, y1, x2, y2); None if it has none."""
    try:
        box = xml.etree.ElementTree.parse(path).find("object/bndbox")
    except xml.etree.ElementTree.ParseError as error:
        raise DamagedFile(f"{path} is not an XML file with boxes: {error}.") from error
    corners = "xmin", "ymin", "xmax", "ymax"
    return None if box is None else np.array([box.findtext(name) for name in corners], np.float32)
