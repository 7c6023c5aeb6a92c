"""Colours that are easy to tell apart, for boxes, masks and classes."""

import itertools

import numpy as np

_LINES = [  # the seven colours of lines in plots of MATLAB, then greys and pure colours
    (0.0, 0.447, 0.741),
    (0.85, 0.325, 0.098),
    (0.929, 0.694, 0.125),
    (0.494, 0.184, 0.556),
    (0.466, 0.674, 0.188),
    (0.301, 0.745, 0.933),
    (0.635, 0.078, 0.184),
    (0.3, 0.3, 0.3),
    (0.6, 0.6, 0.6),
    (1.0, 0.0, 0.0),
    (1.0, 0.5, 0.0),
    (0.749, 0.749, 0.0),
    (0.0, 1.0, 0.0),
    (0.0, 0.0, 1.0),
    (0.667, 0.0, 1.0),
]


def _palette() -> np.ndarray:
    thirds, sixths = (0.0, 0.333, 0.667, 1.0), (0.167, 0.333, 0.5, 0.667, 0.833, 1.0)
    colours = list(_LINES)
    for blue, reds in (0.0, thirds[1:]), (0.5, thirds), (1.0, thirds):
        pairs = itertools.product(reds, thirds[1:] if blue == 0 else thirds)
        left_out = {0.5: [(0.0, 0.0)], 1.0: [(0.0, 0.0), (1.0, 1.0)]}.get(blue, [])
        colours += [(*pair, blue) for pair in pairs if pair not in left_out]
    for channel in range(3):
        colours += [tuple(np.eye(3)[channel] * value) for value in sixths]
    colours += [(value,) * 3 for value in (0.0, 0.143, 0.286, 0.429, 0.571, 0.714, 0.857, 1.0)]
    return np.array(colours, np.float32) * 255


PALETTE_RGB = _palette()  # float32 [79, 3], red, green and blue in [0, 255]
