"""Augmentors made of others: chosen, ordered or applied by chance; and of functions."""

from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils.checks import as_number

from .base import AugmentorList, ImageAugmentor
from .transform import NoOpTransform, Transform, TransformFactory


class Identity(ImageAugmentor):
    """Returns the image as it is."""

    def get_transform(self, img: np.ndarray) -> Transform:
        return NoOpTransform()


class MapImage(ImageAugmentor):
    """Applies a function to the image.

    Args:
      func: takes an image and returns one.
      coord_func: takes coordinates, floats `[N, 2]` of (x, y), and returns those after `func`;
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
    """Leaves all to an augmentor that it draws."""

    def _draw(self) -> ImageAugmentor:
        raise NotImplementedError

    def get_transform(self, img: np.ndarray) -> Transform:
        return self._draw().get_transform(img)

    def augment_return_params(self, d: np.ndarray) -> Tuple[np.ndarray, Transform]:
        # Not by get_transform(): for that, a list of augmentors has to apply them.
        return self._draw().augment_return_params(d)


class RandomApplyAug(_Chooser):
    """Applies an augmentor with some probability, and otherwise leaves the image as it is.

    Args:
      aug: the augmentor, or a list to be applied as a whole.
      prob: the probability.
    """

    def __init__(self, aug: Union[ImageAugmentor, List[ImageAugmentor]], prob: float) -> None:
        self.aug = _as_one(self, aug)
        self.prob = as_number(self, "prob", prob, 0, 1)

    def _parts(self) -> Sequence[ImageAugmentor]:
        return [self.aug]

    def _draw(self) -> ImageAugmentor:
        return self.aug if self.rng.rand() < self.prob else Identity()


class RandomChooseAug(_Chooser):
    """Applies one of several augmentors.

    Args:
      aug_lists: augmentors, all equally likely; or pairs of an augmentor and its probability. In
        the place of an augmentor there may be a list, to be applied as a whole.

    Raises:
      ValueError: the probabilities do not add up to 1 (but for rounding: within one millionth).
    """

    def __init__(self, aug_lists: Sequence[Any]) -> None:
        pairs = [each if isinstance(each, tuple) else (each, None) for each in aug_lists]
        self.aug_lists = [_as_one(self, aug) for aug, _ in pairs]
        given = [prob for _, prob in pairs if prob is not None]
        self.prob = [1 / len(pairs) for _ in pairs]
        if given:
            self.prob = [as_number(self, "a probability", prob, 0, 1) for _, prob in pairs]
        if not pairs or abs(sum(self.prob) - 1) > 1e-6:
            raise ValueError(
                f"RandomChooseAug chooses one augmentor, with probabilities that add up to 1; got "
                f"{len(pairs)} augmentors, with probabilities {self.prob}."
            )
        total = sum(self.prob)  # numpy wants them to add up more closely
        self.prob = [prob / total for prob in self.prob]

    def _parts(self) -> Sequence[ImageAugmentor]:
        return self.aug_lists

    def _draw(self) -> ImageAugmentor:
        return self.aug_lists[self.rng.choice(len(self.aug_lists), p=self.prob)]


class RandomOrderAug(ImageAugmentor):
    """Applies augmentors in random order; each sees what the one before it made.

    Args:
      aug_lists: the augmentors.
    """

    def __init__(self, aug_lists: Sequence[ImageAugmentor]) -> None:
        self.aug_lists = self._as_augmentors(aug_lists)

    def _parts(self) -> Sequence[ImageAugmentor]:
        return self.aug_lists

    def get_transform(self, img: np.ndarray) -> Transform:
        return self.augment_return_params(img)[1]

    def augment_return_params(self, d: np.ndarray) -> Tuple[np.ndarray, Transform]:
        order = self.rng.permutation(len(self.aug_lists))
        return AugmentorList([self.aug_lists[i] for i in order]).augment_return_params(d)


def _as_one(owner: ImageAugmentor, aug: Any) -> ImageAugmentor:
    return AugmentorList(aug) if isinstance(aug, list) else owner._as_augmentors([aug])[0]
