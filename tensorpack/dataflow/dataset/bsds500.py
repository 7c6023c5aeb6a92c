"""BSDS500: photographs with the contours that several people drew in each, from its folder.

Its archive (https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/resources.html)
has for each JPEG a MATLAB file with a cell `groundTruth`, one structure for each person, in which
`Boundaries` is 1 where there is a contour.
"""

from typing import Any, List

import numpy as np

from ..files.images import decode_image
from ._files import PublishedDataset, read_matlab

_URL = "https://www2.eecs.berkeley.edu/Research/Projects/CS/vision/grouping/BSR/BSR_bsds500.tgz"
_SHA256 = "97e49d31764f3912f0c4122707d53062ac9e783ba0f095e447a4d53c1a41af8e"


class BSDS500(PublishedDataset):
    """Yields `[image, edges]`: uint8 `[321, 481, 3]` in BGR, and float32 `[321, 481]`.

    The edges are the share of people who drew a contour at a pixel, from 0 to 1. Upright images
    are transposed with their edges. There are 200 datapoints in "train", 100 in "val" and 200 in
    "test", 1 MB of memory each.
    """

    _PARTS, _FOLDER = ("train", "val", "test"), "bsds500_data"

    def _read(self, part: str) -> List[List[Any]]:
        folder = self._unpacked(_URL, _SHA256, "BSR") / "BSDS500" / "data"
        pairs: List[List[Any]] = []
        for path in sorted((folder / "images" / part).glob("*.jpg")):
            image = decode_image(path.read_bytes(), str(path), bgr=True)
            (people,) = read_matlab(folder / f"groundTruth/{part}/{path.stem}.mat", "groundTruth")
            contours = [person["Boundaries"][0, 0] for person in people.ravel()]
            edges = np.mean(contours, axis=0, dtype=np.float32)
            if len(image) > len(image[0]):  # upright
                image, edges = image.swapaxes(0, 1), edges.T
            pairs.append([np.ascontiguousarray(image), np.ascontiguousarray(edges)])
        return pairs
