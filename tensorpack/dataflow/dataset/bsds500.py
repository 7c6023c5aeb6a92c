"""BSDS500: photographs with the contours that several people drew in each, from its archive.

The archive (https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/resources.html)
has for each JPEG a MATLAB file with a cell `groundTruth`, one structure for each person, in which
`Boundaries` is 1 where there is a contour.
"""

from typing import Any, Callable, List

import numpy as np

from ..files.images import decode_image
from ._files import DamagedFile, PublishedDataset, read_matlab

_URL = "https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/BSR/BSR_bsds500.tgz"
_SHA256 = "97e49d31764f3912f0c4122707d53062ac9e783ba0f095e447a4d53c1a41af8e"


class BSDS500(PublishedDataset):
    """Yields `[image, edges]`: uint8 `[321, 481, 3]` in BGR, and float32 `[321, 481]`.

    The edges are the share of people who drew a contour at a pixel, from 0 to 1. Upright images
    are transposed with their edges. There are 200 datapoints in "train", 100 in "val" and 200 in
    "test", 1 MB of memory each. The archive is not unpacked; where its folder `BSR` lies beside
    it, the files there are read.
    """

    _PARTS, _FOLDER = ("train", "val", "test"), "bsds500_data"

    def _read(self, part: str) -> List[List[Any]]:
        contents = self._read_archive(_URL, _SHA256, "BSR", lambda name: f"/{part}/" in name)
        start = f"BSR/BSDS500/data/images/{part}/"
        pairs: List[List[Any]] = []
        for name in sorted(contents):
            if not name.startswith(start) or not name.endswith(".jpg"):
                continue
            image = decode_image(contents[name], name, bgr=True)
            drawn = name.replace("/images/", "/groundTruth/").replace(".jpg", ".mat")
            (people,) = read_matlab(drawn, "groundTruth", content=contents[drawn])
            lines = [person["Boundaries"][0, 0] for person in people.ravel()]
            edges = np.mean(lines, axis=0, dtype=np.float32)
            if len(image) > len(image[0]):  # upright
                image, edges = image.swapaxes(0, 1), edges.T
            pairs.append([image, edges])
        if not pairs:
            raise DamagedFile(f"What is in {self._directory} has no images below {start}.")
        return pairs

    def _reader(self) -> Callable[[int], List[Any]]:
        return lambda index: [each.copy() for each in self.lst[index]]
