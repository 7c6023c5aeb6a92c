"""BSDS500: photographs with the contours that several people drew in each, from its archive.

The archive is described at
https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/resources.html: for each JPEG
there is a MATLAB file with a cell `groundTruth`, one structure for each person, in which
`Boundaries` is 1 where there is a contour.
"""

import os
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from tensorpack.utils.fs import get_dataset_path
from tensorpack.utils.optional import require

from ..files.images import decode_image
from ..files.records import DamagedFile, PathLike
from ..raw import DataFromList
from ._files import check_split, find_files, read_file, read_members
from ._matlab import read_matlab

__all__ = ["BSDS500"]

_URL = (
    "https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/BSR/BSR_bsds500.tgz",
    "97e49d31764f3912f0c4122707d53062ac9e783ba0f095e447a4d53c1a41af8e",
)
_FOLDER = "BSR/BSDS500/data"
_SIZE = (321, 481)  # rows and columns
_KINDS = {"images": ".jpg", "groundTruth": ".mat"}  # folders below, and how their files end


class BSDS500(DataFromList):
    """Yields `[image, edges]`: uint8 `[321, 481, 3]` in BGR, and float32 `[321, 481]`.

    The edges are the share of people who drew a contour at a pixel, from 0 to 1. Upright images
    are transposed with their edges. There are 200 datapoints in "train", 100 in "val" and 200 in
    "test"; they are held in memory, 0.6 MB each. The archive is read where it lies and not
    unpacked; where its folder `BSR` lies beside it, the files there are read.
    """

    def __init__(
        self,
        name: str,
        data_dir: Optional[PathLike] = None,
        shuffle: bool = True,
        *,
        download: bool = False,
    ) -> None:
        """
        Args:
          name: "train", "val" or "test".
          data_dir: the folder of the archive; by default the one of this dataset in
            $TENSORPACK_DATASET.
          shuffle: whether each pass has its own order.
          download: whether to download a missing archive.
        """
        check_split(name, ("train", "val", "test"))
        require("cv2")
        require("scipy.io")
        directory = os.fspath(get_dataset_path("bsds500_data") if data_dir is None else data_dir)
        super().__init__(_Pairs(*_read_part(name, directory, download)), shuffle)


class _Pairs:
    """The datapoints by index."""

    def __init__(self, where: str, contents: Dict[str, Dict[str, bytes]]) -> None:
        """Takes the images and the MATLAB files by their names without an ending."""
        images, drawn = contents.values()
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


def _read_part(
    part: str, directory: str, download: bool
) -> Tuple[str, Dict[str, Dict[str, bytes]]]:
    """Returns where the files are, and their contents by kind and by name without an ending."""
    folder = os.path.join(directory, *_FOLDER.split("/"))
    if os.path.isdir(folder):
        found = {}
        for kind in _KINDS:
            there = os.path.join(folder, kind, part)
            for name in os.listdir(there) if os.path.isdir(there) else []:
                found[f"{kind}/{part}/{name}"] = read_file(os.path.join(there, name))
        return f"{folder}", _by_kind(found, part)
    (path,) = find_files("BSDS500", directory, dict([_URL]), download)
    members = read_members(path, lambda name: name.split("/")[-2:-1] == [part])
    prefix = len(_FOLDER) + 1
    found = {name[prefix:]: each for name, each in members.items() if name.startswith(_FOLDER)}
    return path, _by_kind(found, part)


def _by_kind(contents: Dict[str, bytes], part: str) -> Dict[str, Dict[str, bytes]]:
    """Sorts contents by the kind of their file; those of other kinds are left out."""
    found: Dict[str, Dict[str, bytes]] = {kind: {} for kind in _KINDS}
    for name, content in contents.items():
        kind, _, file = name.partition(f"/{part}/")
        if file.endswith(_KINDS.get(kind, "\0")):
            found[kind][os.path.splitext(file)[0]] = content
    return found
