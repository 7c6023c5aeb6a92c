"""Augmentors of other libraries: imgaug and albumentations.

Their random generators are seeded for each image, with a number drawn from `self.rng`. So what they
do is a value, like any other transform, and a run repeats.
"""

import random
import threading
from contextlib import contextmanager
from functools import partial
from typing import Any, Iterator, Tuple

import numpy as np

from tensorpack.utils.optional import require

from ._pixels import as_coords, check_size, keep_channels
from .base import ImageAugmentor
from .transform import PhotometricTransform, Transform, TransformFactory

_SEEDS = 2**31 - 1
_global_streams = threading.Lock()


class IAAugmentor(ImageAugmentor):
    """Applies an augmenter of imgaug, also to coordinates and masks.

    Args:
      augmentor: an `imgaug.augmenters.Augmenter`, such as a `Sequential`.
    """

    def __init__(self, augmentor: Any) -> None:
        kind = require("imgaug.augmenters", "imgaug").Augmenter
        if not isinstance(augmentor, kind):
            raise TypeError(f"IAAugmentor takes an Augmenter of imgaug, got {augmentor!r}.")
        self.augmentor = augmentor

    def get_transform(self, img: np.ndarray) -> Transform:
        return _IATransform(self.augmentor, int(self.rng.randint(_SEEDS)), img.shape)


class Albumentations(ImageAugmentor):
    """Applies a transform of albumentations.

    Coordinates and masks are supported for its `ImageOnlyTransform`s, which leave them as they are,
    and an error for all others.

    Args:
      augmentor: called with `image=`, and returns a dict with `"image"`, such as a `Compose`.
    """

    def __init__(self, augmentor: Any) -> None:
        self._moves = not isinstance(augmentor, require("albumentations").ImageOnlyTransform)
        if not callable(augmentor) or isinstance(augmentor, type):
            raise TypeError(f"Albumentations takes a transform of it, got {augmentor!r}.")
        self.augmentor = augmentor

    def get_transform(self, img: np.ndarray) -> Transform:
        seed = int(self.rng.randint(_SEEDS))
        if self._moves:  # where to is not known
            augment = partial(self._augment, param=seed)
            return TransformFactory("Albumentations", apply_image=augment)
        return PhotometricTransform(self, seed)

    def _augment(self, img: np.ndarray, param: int) -> np.ndarray:
        if hasattr(self.augmentor, "set_random_seed"):  # since 2.0
            self.augmentor.set_random_seed(param)
            result = self.augmentor(image=img)["image"]
        else:
            with _seeded_globals(param):
                result = self.augmentor(image=img)["image"]
        return keep_channels(img, result)


class _IATransform(Transform):
    """Applies an augmenter with a seed, on images of one shape and what lies on them."""

    def __init__(self, augmentor: Any, seed: int, shape: Tuple[int, ...]) -> None:
        self.augmentor, self.seed, self.shape = augmentor, seed, shape

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        check_size(self, img, *self.shape[:2])
        return self._seeded().augment_image(img)

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        points = require("imgaug").KeypointsOnImage.from_xy_array(as_coords(coords), self.shape)
        return self._seeded().augment_keypoints([points])[0].to_xy_array()

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        check_size(self, segmentation, *self.shape[:2])
        of_imgaug = require("imgaug.augmentables.segmaps").SegmentationMapsOnImage
        mask = of_imgaug(segmentation.astype(np.int32), self.shape)
        result = self._seeded().augment_segmentation_maps([mask])[0].get_arr()
        return result.astype(segmentation.dtype)

    def _seeded(self) -> Any:
        augmentor = self.augmentor.to_deterministic()  # a copy
        augmentor.seed_(self.seed, deterministic_too=True)
        return augmentor


@contextmanager
def _seeded_globals(seed: int) -> Iterator[None]:
    """Seeds the random streams that the whole process shares, and restores them afterwards."""
    with _global_streams:
        of_python, of_numpy = random.getstate(), np.random.get_state()
        try:
            random.seed(seed)
            np.random.seed(seed)
            yield
        finally:
            random.setstate(of_python)
            np.random.set_state(of_numpy)
