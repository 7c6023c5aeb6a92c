"""Knows which TensorFlow is installed, and gives its graph-mode interface under one name.

Everything else in the package asks this module and never TensorFlow itself, so whatever differs
between TensorFlow 1.15 and 2.x is found here. Nothing is patched and no setting is changed.
"""

from typing import Tuple

import tensorflow.compat.v1 as tfv1

__all__ = ["TensorSpec", "is_tfv2", "tf_version", "tfv1"]

TensorSpec = tfv1.TensorSpec


def tf_version() -> Tuple[int, int, int]:
    """Returns the version of TensorFlow as numbers, such as `(2, 21, 0)`."""
    numbers = []
    for part in tfv1.__version__.split(".")[:3]:
        digits = ""
        for character in part:
            if not character.isdigit():
                break
            digits += character
        numbers.append(int(digits or 0))
    major, minor, patch = (numbers + [0, 0, 0])[:3]
    return major, minor, patch


def is_tfv2() -> bool:
    """Returns whether a TensorFlow 2 is installed."""
    return tf_version()[0] >= 2
