"""The colours that scripts know by their index."""

import numpy as np

from tensorpack.utils.palette import PALETTE_RGB


def test_colours_are_in_their_place():
    assert (PALETTE_RGB.shape, PALETTE_RGB.dtype) == ((79, 3), np.float32)
    known = {
        0: (0, 113.985, 188.955),
        14: (170.085, 0, 255),
        23: (255, 255, 0),
        24: (0, 84.915, 127.5),
        38: (255, 255, 127.5),
        42: (84.915, 0, 255),
        52: (255, 170.085, 255),
        53: (42.585, 0, 0),
        64: (0, 255, 0),
        70: (0, 0, 255),
        72: (36.465, 36.465, 36.465),
        78: (255, 255, 255),
    }
    np.testing.assert_allclose(PALETTE_RGB[list(known)], list(known.values()), rtol=1e-5)
