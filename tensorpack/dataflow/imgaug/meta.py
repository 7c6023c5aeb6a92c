"""Augmentors that apply others by chance, call a function, or wrap one of another library.

The random generators of imgaug and albumentations are seeded for each image with a number drawn
from `self.rng`. So what they do is a value, like any other transform, and a run repeats.
"""

import random
import threading
from contextlib import contextmanager
from functools import partial
from typing import Any, Callable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils.checks import as_number
from tensorpack.utils.optional import require

from ._pixels import as_coords, keep_channels
from .base import AugmentorList, ImageAugmentor
from .transform import NoOpTransform, PhotometricTransform, Transform, TransformFactory

_SEEDS = 2**31 - 1
_global_streams = threading.Lock()


class Identity(ImageAugmentor):
    """Returns the image as it is."""

    def get_transform(self, img: np.ndarray) -> Transform:
        return NoOpTransform()


class MapImage(ImageAugmentor):
    """Applies a function to the image.

    `coord_func` takes coordinates, floats `[N, 2]` of (x, y), and returns those after `func`;
    without it, coordinates are an error.
    """

    def __init__(
        self,
        func: Callable[[np.ndarray], np.ndarray],
        coord_func: Optional[Callable[[np.ndarray], np.ndarray]] = None,
    ) -> None:
        self.func, self.coord_func = func, coord_func

    def get_transform(self, img: np.ndarray) -> Transform:
        functions = {"apply_image": self.func}
        if self.coord_func is not None:
            functions["apply_coords"] = self.coord_func
        return TransformFactory("MapImage", **functions)


class _Chooser(ImageAugmentor):
    """Leaves all to an augmentor that it draws, by default among `aug_lists`."""

    aug_lists: Sequence[ImageAugmentor]
    _draw: Callable[[], ImageAugmentor]  # returns that augmentor

    def _parts(self) -> Sequence[ImageAugmentor]:
        return self.aug_lists

    def get_transform(self, img: np.ndarray) -> Transform:
        return self._draw().get_transform(img)

    def augment_return_params(self, d: np.ndarray) -> Tuple[np.ndarray, Transform]:
        if type(self).get_transform is not _Chooser.get_transform:
            return super().augment_return_params(d)
        # Not by get_transform(): for that, a list of augmentors has to apply them.
        return self._draw().augment_return_params(d)


class RandomApplyAug(_Chooser):
    """Applies an augmentor, or a list as a whole, with probability `prob`; otherwise nothing."""

    def __init__(self, aug: Union[ImageAugmentor, List[ImageAugmentor]], prob: float) -> None:
        self.aug = _as_one(self, aug)
        self.aug_lists = [self.aug]
        self.prob = as_number(self, "prob", prob, 0, 1)

    def _draw(self) -> ImageAugmentor:
        return self.aug if self.rng.rand() < self.prob else Identity()


class RandomChooseAug(_Chooser):
    """Applies one of several augmentors.

    Args:
      aug_lists: augmentors, all equally likely; or pairs of an augmentor and its probability, which
        add up to 1 within one millionth. A list in the place of an augmentor is applied as a whole.
    """

    def __init__(self, aug_lists: Sequence[Any]) -> None:
        pairs = [aug if isinstance(aug, tuple) else (aug, None) for aug in aug_lists]
        self.aug_lists = [_as_one(self, aug) for aug, _ in pairs]
        probs = [1 / len(pairs) for _ in pairs]
        if any(prob is not None for _, prob in pairs):
            probs = [as_number(self, "a probability", prob, 0, 1) for _, prob in pairs]
        as_number(self, "the sum of the probabilities", sum(probs), 1 - 1e-6, 1 + 1e-6)
        self.prob = [prob / sum(probs) for prob in probs]  # numpy wants a sum closer to 1

    def _draw(self) -> ImageAugmentor:
        return self.aug_lists[self.rng.choice(len(self.aug_lists), p=self.prob)]


class RandomOrderAug(_Chooser):
    """Applies augmentors in random order; each sees what the one before it made."""

    def __init__(self, aug_lists: Sequence[ImageAugmentor]) -> None:
        self.aug_lists = self._as_augmentors(aug_lists)

    def _draw(self) -> ImageAugmentor:
        order = self.rng.permutation(len(self.aug_lists))
        return AugmentorList([self.aug_lists[i] for i in order])


class IAAugmentor(ImageAugmentor):
    """Applies an `imgaug.augmenters.Augmenter`, also to coordinates and masks."""

    def __init__(self, augmentor: Any) -> None:
        require("imgaug")
        self.augmentor = augmentor

    def get_transform(self, img: np.ndarray) -> Transform:
        return _IATransform(self.augmentor, int(self.rng.randint(_SEEDS)), img.shape)


class Albumentations(ImageAugmentor):
    """Applies a transform of albumentations, such as a `Compose`.

    Coordinates and masks are supported for its `ImageOnlyTransform`s, which leave them as they are,
    and an error for all others.
    """

    def __init__(self, augmentor: Any) -> None:
        self._moves = not isinstance(augmentor, require("albumentations").ImageOnlyTransform)
        self.augmentor = augmentor

    def get_transform(self, img: np.ndarray) -> Transform:
        apply = partial(self._apply, seed=int(self.rng.randint(_SEEDS)))
        if self._moves:  # where to is not known
            return TransformFactory("Albumentations", apply_image=apply)
        return PhotometricTransform(apply)

    def _apply(self, img: np.ndarray, seed: int) -> np.ndarray:
        with _seeded_globals(seed):  # before 2.0
            getattr(self.augmentor, "set_random_seed", lambda seed: None)(seed)
            return keep_channels(img, self.augmentor(image=img)["image"])


class _IATransform(Transform):
    """Applies an augmenter with a seed, on images of one shape and what lies on them."""

    def __init__(self, augmentor: Any, seed: int, shape: Tuple[int, ...]) -> None:
        self.augmentor, self.seed, self.shape = augmentor, seed, shape

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        return self._seeded_copy().augment_image(img)

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        points = require("imgaug").KeypointsOnImage.from_xy_array(as_coords(coords), self.shape)
        return self._seeded_copy().augment_keypoints([points])[0].to_xy_array()

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        of_imgaug = require("imgaug").SegmentationMapsOnImage
        mask = of_imgaug(segmentation.astype(np.int32), self.shape)
        result = self._seeded_copy().augment_segmentation_maps([mask])[0].get_arr()
        return result.astype(segmentation.dtype)

    def _seeded_copy(self) -> Any:
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


def _as_one(owner: ImageAugmentor, aug: Any) -> ImageAugmentor:
    return AugmentorList(aug) if isinstance(aug, list) else owner._as_augmentors([aug])[0]
