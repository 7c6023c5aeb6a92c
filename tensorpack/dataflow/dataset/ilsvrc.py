"""ILSVRC12, known as ImageNet: images in folders, with lists of labels and XML files of boxes."""

import math
import os
import xml.etree.ElementTree
from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils.untrusted import read_untrusted

from ..files.images import ImageRecords
from ..files.records import DamagedFile, PathLike, RecordsFlow
from ._files import check_split
from ._ilsvrc_meta import PARTS, ILSVRCMeta
from .tiny_imagenet import TinyImageNet

__all__ = ["ILSVRC12", "ILSVRC12Files", "ILSVRCMeta", "TinyImageNet"]

_MOST_XML_BYTES = 1 << 20  # published ones have less than 10 kB
_CORNERS = ("xmin", "ymin", "xmax", "ymax")


class ILSVRC12Files(RecordsFlow):
    """Yields `[path, label]` for the images of ILSVRC12; the label is an int from 0 to 999.

    The folder, whose images have to be unpacked, looks like this, with the folder of each class in
    "val", too, where `dir_structure` is "train"::

        train/n02134418/n02134418_198.JPEG
        val/ILSVRC2012_val_00000001.JPEG
        test/ILSVRC2012_test_00000001.JPEG
        bbox/n02134418/n02134418_198.xml
    """

    def __init__(
        self,
        dir: PathLike,
        name: str,
        meta_dir: Optional[PathLike] = None,
        shuffle: Optional[bool] = None,
        dir_structure: Optional[str] = None,
        *,
        download: bool = False,
    ) -> None:
        """
        Args:
          dir: the folder.
          name: "train", "val" or "test", whose labels mean nothing.
          meta_dir: the folder of `ILSVRCMeta`.
          shuffle: whether each pass has its own order; None for "train" only.
          dir_structure: "original" or "train", see `ILSVRCMeta.get_image_list`; None to look.
          download: whether to download a missing archive of `ILSVRCMeta`; images never are.

        Raises:
          FileNotFoundError: the images are not there, or the lists; the message says what to put
            where.
        """
        root, images = _listed(dir, name, meta_dir, dir_structure, download)
        super().__init__(_Paths(root, images), name == "train" if shuffle is None else shuffle)


class ILSVRC12(ILSVRC12Files):
    """Yields `[image, label]`: uint8 `[h, w, 3]` in BGR, and an int from 0 to 999.

    Images that are grey have three equal channels. For the folders see `ILSVRC12Files`.
    """

    def __init__(
        self,
        dir: PathLike,
        name: str,
        meta_dir: Optional[PathLike] = None,
        shuffle: Optional[bool] = None,
        dir_structure: Optional[str] = None,
        include_bb: Union[bool, PathLike] = False,
        *,
        download: bool = False,
        max_errors: int = 0,
    ) -> None:
        """
        Args:
          dir, name, meta_dir, shuffle, dir_structure, download: as in `ILSVRC12Files`.
          include_bb: True to yield `[image, label, box]` for "train", with the first box of the
            image in `dir/bbox`, as from `get_training_bbox`, or (0, 0, w, h) if it has none. A path
            is another folder of boxes.
          max_errors: how many images that cannot be read a pass skips, each with a warning in the
            log; one more is an error. `len` counts them.

        Raises:
          OSError, ValueError: as `ILSVRC12Files` does; or there are no boxes.
        """
        root, images = _listed(dir, name, meta_dir, dir_structure, download)
        files = [os.path.join(root, path) for path, _ in images]
        records: Any = ImageRecords(files, [label for _, label in images], bgr=True)
        if include_bb:
            if name != "train":
                raise ValueError(f"Only the part 'train' has boxes, but name is {name!r}.")
            folder = os.path.join(dir, "bbox") if include_bb is True else include_bb
            records = _WithBoxes(records, self.get_training_bbox(folder, images))
        shuffle = name == "train" if shuffle is None else shuffle
        RecordsFlow.__init__(self, records, shuffle, max_errors)

    @staticmethod
    def get_training_bbox(
        bbox_dir: PathLike, imglist: Sequence[Tuple[str, int]]
    ) -> List[Optional[np.ndarray]]:
        """Returns the first box of each image, float32 (x1, y1, x2, y2) in pixels; None without.

        Args:
          bbox_dir: the folder, in which `n02134418/n02134418_198.xml` belongs to the JPEG of this
            name.
          imglist: from `ILSVRCMeta.get_image_list("train")`.
        """
        if not os.path.isdir(bbox_dir):
            raise NotADirectoryError(f"There is no folder {bbox_dir} with boxes.")
        boxes = []
        for name, _ in imglist:
            path = os.path.join(bbox_dir, os.path.splitext(name)[0] + ".xml")
            boxes.append(_read_box(path) if os.path.isfile(path) else None)
        return boxes


class _Paths:
    """The datapoints `[path, label]` by index."""

    def __init__(self, root: str, images: Sequence[Tuple[str, int]]) -> None:
        self._root, self._images = root, images

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> List[Any]:
        path, label = self._images[index]
        return [os.path.join(self._root, path), label]


class _WithBoxes:
    """Images with their box by index."""

    def __init__(self, images: ImageRecords, boxes: Sequence[Optional[np.ndarray]]) -> None:
        self._images, self._boxes = images, boxes

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> List[Any]:
        image, label = self._images[index]
        box = self._boxes[index]
        if box is None:
            return [image, label, np.array([0, 0, *image.shape[1::-1]], np.float32)]
        return [image, label, box.copy()]

    def file_of(self, index: int) -> str:
        """Returns the path of an image."""
        return self._images.file_of(index)


def _listed(
    dir: PathLike,
    name: str,
    meta_dir: Optional[PathLike],
    dir_structure: Optional[str],
    download: bool,
) -> Tuple[str, List[Tuple[str, int]]]:
    """Returns the folder of a part, and the images below it."""
    check_split(name, PARTS)
    root = os.path.abspath(os.path.join(dir, name))
    if not os.path.isdir(root):
        raise FileNotFoundError(
            f"There is no folder {root} with images of ILSVRC12. They can be had from "
            "https://image-net.org/; unpack them there."
        )
    meta = ILSVRCMeta(meta_dir, download=download)
    if dir_structure is None:
        dir_structure = "train" if name == "train" else meta.guess_dir_structure(root)
    images = meta.get_image_list(name, dir_structure)
    first = os.path.join(root, images[0][0])
    if not os.path.exists(first):
        raise FileNotFoundError(
            f"There is no {first}, but that is the first image of the part {name!r} with the "
            f"structure {dir_structure!r}. Unpack the images there, or pass another dir_structure."
        )
    return root, images


def _read_box(path: str) -> Optional[np.ndarray]:
    """Returns the first box in an XML file, float32 (x1, y1, x2, y2); None if it has none."""
    try:
        text = read_untrusted(path, _MOST_XML_BYTES).decode("utf-8")
        if "<!DOCTYPE" in text:  # only there could entities be declared
            raise ValueError("it declares a document type, which is not read")
        found = xml.etree.ElementTree.fromstring(text).find("object/bndbox")
        if found is None:
            return None
        box = [float(found.findtext(name, "")) for name in _CORNERS]
        if not all(map(math.isfinite, box)) or box[0] > box[2] or box[1] > box[3]:
            raise ValueError(f"its box is {box}")
    except (OSError, ValueError, xml.etree.ElementTree.ParseError) as error:
        raise DamagedFile(f"{path} is not an XML file with boxes: {error}.") from error
    return np.array(box, np.float32)
