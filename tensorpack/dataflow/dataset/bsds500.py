"""BSDS500: photographs with the contours that several people drew in each, from its archive.

The archive (https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/resources.html)
has for each JPEG a MATLAB file with a cell `groundTruth`, one structure for each person, in which
`Boundaries` is 1 where there is a contour.
"""

import os
import re
from pathlib import Path
from typing import Any, Dict, List

import numpy as np

from tensorpack.utils.optional import require

from ..files.images import decode_image
from ._files import DamagedFile, PublishedDataset, read_matlab, read_members

_URL = (
    "https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/BSR/BSR_bsds500.tgz",
    "97e49d31764f3912f0c4122707d53062ac9e783ba0f095e447a4d53c1a41af8e",
)
_FOLDER = "BSR/BSDS500/data"
_SIZE = (321, 481)  # rows and columns


class BSDS500(PublishedDataset):
    """Yields `[image, edges]`: uint8 `[321, 481, 3]` in BGR, and float32 `[321, 481]`.

    The edges are the share of people who drew a contour at a pixel, from 0 to 1. Upright images
    are transposed with their edges. There are 200 datapoints in "train", 100 in "val" and 200 in
    "test", 0.6 MB of memory each. The archive is not unpacked; where its folder `BSR` lies beside
    it, the files there are read.
    """

    _PARTS, _FOLDER = ("train", "val", "test"), "bsds500_data"

    def _read(self, part: str) -> "_Pairs":
        require("cv2")
        require("scipy.io")
        where = os.path.join(self._directory, *_FOLDER.split("/"))
        if os.path.isdir(where):
            contents = {
                path.relative_to(self._directory).as_posix(): path.read_bytes()
                for path in Path(where).glob(f"*/{part}/*")
            }
        else:
            (where,) = self._find(dict([_URL]))
            contents = read_members(where, lambda name: name.split("/")[-2:-1] == [part])

        def found(folder: str, end: str) -> Dict[str, bytes]:
            names = [
                re.fullmatch(f"{_FOLDER}/{folder}/{part}/(.+){end}", name) for name in contents
            ]
            return {match.group(1): contents[match.group()] for match in names if match}

        return _Pairs(where, found("images", r"\.jpg"), found("groundTruth", r"\.mat"))


class _Pairs:
    """The datapoints by index."""

    def __init__(self, where: str, images: Dict[str, bytes], drawn: Dict[str, bytes]) -> None:
        """Takes the images and the MATLAB files by their names without an ending."""
        if sorted(images) != sorted(drawn) or not images:
            raise DamagedFile(f"{where} has {len(images)} images, and contours of {len(drawn)}.")
        self._images = np.empty((len(images), *_SIZE, 3), np.uint8)
        self._edges = np.empty((len(images), *_SIZE), np.uint8)  # how many people drew one
        self._people = []
        for index, name in enumerate(sorted(images)):
            path = f"{name} of {where}"
            image = decode_image(images[name], path, bgr=True)
            boundaries = _read_boundaries(drawn[name], path)
            upright = image.shape[:2] == _SIZE[::-1]
            size = _SIZE[::-1] if upright else _SIZE
            if {image.shape[:2], *(each.shape for each in boundaries)} != {size}:
                raise DamagedFile(f"{path} is not an image of 481 x 321 pixels with its contours.")
            edges = np.sum(boundaries, axis=0, dtype=np.uint8)
            self._images[index] = image.swapaxes(0, 1) if upright else image
            self._edges[index] = edges.T if upright else edges
            self._people.append(len(boundaries))

    def __len__(self) -> int:
        return len(self._people)

    def __getitem__(self, index: int) -> List[Any]:
        edges = np.divide(self._edges[index], self._people[index], dtype=np.float32)
        return [self._images[index].copy(), edges]


def _read_boundaries(content: bytes, path: str) -> List[np.ndarray]:
    """Returns the contours that each person drew, bool `[h, w]`."""
    cell = read_matlab(path, "groundTruth", content=content)["groundTruth"]
    try:
        found = [person["Boundaries"][0, 0] != 0 for person in cell.ravel()]
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise DamagedFile(f"{path} has a groundTruth without Boundaries: {error}") from error
    if not 0 < len(found) < 256:
        raise DamagedFile(f"{path} has the contours of {len(found)} people.")
    return found
