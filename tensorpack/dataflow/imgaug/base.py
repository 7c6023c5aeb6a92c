"""The contract of augmentors, in its present and its earlier spellings, and lists of them."""

import functools
import inspect
import operator
import os
from collections import ChainMap
from itertools import takewhile
from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from tensorpack.utils.argtools import log_once
from tensorpack.utils.rng import get_rng, rng_of_datapoints

from .transform import PhotometricTransform, Transform, TransformList


class AugmentationError(ValueError):
    """An augmentor failed; names it, and the shape and dtype of the image that it got."""


def _takes_drawn(method: Any) -> Callable[..., Any]:
    """Returns a method of 2017 that takes what was drawn also as the transform made of it."""

    @functools.wraps(method)
    def call(self: "ImageAugmentor", value: Any, param: Any) -> Any:
        return method.__get__(self, type(self))(value, _unwrap(self, param))

    return call


class ImageAugmentor:
    """Draws what to do to an image, and does it::

        tfm = augmentor.get_transform(img)     # all random choices are made here
        img, boxes = tfm.apply_image(img), tfm.apply_box(boxes)

    or `img = augmentor.augment(img)` for the image alone. An image is `[h, w]` or `[h, w, c]`, of
    uint8 in [0, 255] or of floats, and is left as it was. A result keeps the axis of a single
    channel, and is a new array or a view.

    A subclass defines `get_transform`. In the spelling of 2017 it defines `_augment(img, param)`,
    and if needed `_get_augment_params(img)` and `_augment_coords(coords, param)`. It stores its
    arguments under their names, draws from `self.rng`, and lists augmentors in it in `_parts`.

    An augmentor of one's own may take another structure than an array, such as a dict of images; so
    may the lists and choices that it is in.
    """

    _rng: Optional[np.random.RandomState] = None
    _rng_pid = 0

    @property
    def rng(self) -> np.random.RandomState:
        """The random stream, of its own in each process."""
        if self._rng is None or self._rng_pid != os.getpid():
            rng = rng_of_datapoints()
            self.rng = get_rng(self) if rng is None else rng
        return self._rng  # type: ignore[return-value]

    @rng.setter
    def rng(self, rng: np.random.RandomState) -> None:
        self._rng, self._rng_pid = rng, os.getpid()

    def reset_state(self) -> None:
        """Begins a new random stream, and new ones in the augmentors in it."""
        self.rng = get_rng(self)
        for aug in self._parts():
            aug.reset_state()

    def use_rng(self, rng: np.random.RandomState) -> None:
        """Draws from a given stream from now on, as do the augmentors in it."""
        self.rng = rng
        for aug in self._parts():
            aug.use_rng(rng)

    def _parts(self) -> Sequence["ImageAugmentor"]:
        """Override to return the augmentors in this one."""
        return ()

    def get_transform(self, img: np.ndarray) -> Transform:
        """Draws what to do to an image; see `Transform`."""
        return self._as_transform(None)

    def augment(self, img: np.ndarray) -> np.ndarray:
        """Returns an augmented image; an `AugmentationError` is raised if it failed."""
        return self.augment_return_params(img)[0]

    def augment_return_params(self, d: np.ndarray) -> Tuple[np.ndarray, Transform]:
        """Returns an augmented image, and the transform that was applied to it."""
        _check_image(d)
        try:
            tfm = self.get_transform(d)
            return tfm.apply_image(d), tfm
        except AugmentationError:
            raise  # names the augmentor in this one that failed
        except Exception as error:
            if not isinstance(d, np.ndarray):
                got = f"got {type(d).__name__}; {self} failed on it: {error}"
                raise TypeError(f"An image is a numpy array, {got}") from error
            raise AugmentationError(
                f"{self} failed on an image of shape {d.shape}, {d.dtype}: {error}"
            ) from error

    def augment_with_params(self, d: np.ndarray, param: Transform) -> np.ndarray:
        """Returns an image with a given transform; new code calls `param.apply_image(d)`."""
        return self._transform_of(param).apply_image(d)

    def augment_coords(self, coords: np.ndarray, param: Transform) -> np.ndarray:
        """Returns coordinates with a given transform; new code calls `param.apply_coords`."""
        return self._transform_of(param).apply_coords(coords)

    def _as_transform(self, param: Any) -> Transform:
        """Returns what was drawn as a transform, by way of the methods that a subclass defines."""
        augments = type(self)._augment is not ImageAugmentor._augment
        if isinstance(param, Transform):
            moves = type(self)._augment_coords is not ImageAugmentor._augment_coords
            wraps = (augments or moves) and not _is_made_by(self, param)
            return self._wrap(param) if wraps else param
        if augments:
            return self._wrap(param)
        name = type(self).__name__
        raise NotImplementedError(f"{name} does nothing yet: define {name}.get_transform().")

    def _wrap(self, param: Any) -> Transform:
        return _TransformOf2017(self, param)

    def _transform_of(self, param: Any) -> Transform:
        by_methods = isinstance(param, (PhotometricTransform, _TransformOf2017))
        return param if by_methods else self._as_transform(param)

    def _augment(self, img: np.ndarray, param: Any) -> np.ndarray:
        """The spelling of 2017: override to augment an image as was drawn."""
        return _unwrap(self, param).apply_image(img)

    def _get_augment_params(self, img: np.ndarray) -> Any:
        """The spelling of 2017: override to draw what to do; by default a `Transform`."""

    def _augment_coords(self, coords: np.ndarray, param: Any) -> np.ndarray:
        """The spelling of 2017: override where pixels move; by default as a `Transform` does."""
        return _unwrap(self, param).apply_coords(coords) if isinstance(param, Transform) else coords

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A script that derives its augmentor from one of ours means the methods that it defines.
        classes = takewhile(
            lambda base: base is cls or not issubclass(base, ImageAugmentor), cls.__mro__
        )
        methods = ChainMap(*(dict(vars(base)) for base in classes))
        draw = methods.get("_get_augment_params")
        if "get_transform" in methods:
            cls._get_augment_params = draw or methods["get_transform"]  # type: ignore
        elif draw or "_augment" in methods or "_augment_coords" in methods:
            draw = draw or (lambda self, img: super(cls, self).get_transform(img))  # type: ignore
            cls.get_transform = lambda self, img: self._as_transform(  # type: ignore
                draw.__get__(self, cls)(img)  # it may be a static method, or partial
            )
        for name in vars(cls).keys() & {"_augment", "_augment_coords"}:
            setattr(cls, name, _takes_drawn(vars(cls)[name]))

    def _as_augmentors(self, augmentors: Any) -> List["ImageAugmentor"]:
        """Returns augmentors as a list; a TypeError if one is something else."""
        if isinstance(augmentors, AugmentorList):
            return augmentors.augmentors
        augs = list(augmentors) if isinstance(augmentors, (list, tuple)) else [augmentors]
        for aug in augs:
            if not isinstance(aug, ImageAugmentor):
                hint = " Make an object of the class." if isinstance(aug, type) else ""
                raise TypeError(
                    f"{type(self).__name__} takes augmentors, such as imgaug.Flip(horiz=True), got "
                    f"{aug!r}.{hint}"
                )
        return augs

    _init = Transform._init

    def _rand_range(self, low: float = 1.0, high: Optional[float] = None, size: Any = None) -> Any:
        """Draws evenly from [low, high), or from [0, low); float64 of shape `size`."""
        if high is None:
            low, high = 0, low
        return self.rng.uniform(low, high, size)

    def __repr__(self) -> str:
        arguments = []
        for name, parameter in inspect.signature(type(self)).parameters.items():
            value = vars(self).get(name, parameter.default)
            if value is not parameter.default:
                arguments.append(f"{name}={value!r}")
        return f"{type(self).__name__}({', '.join(arguments)})"


Augmentor = ImageAugmentor
BaseTransform = Transform  # its name in type checks of scripts


class TransformAugmentorBase(ImageAugmentor):
    """The spelling of 2018: `_get_augment_params(img)` returns a `Transform`."""


class PhotometricAugmentor(ImageAugmentor):
    """An augmentor that moves no pixels.

    A subclass defines `_augment(img, param)`, and `_get_augment_params(img)` if it draws anything
    but a number in `_limits`.
    """

    _limits: Optional[Tuple[float, float]] = None

    def _wrap(self, param: Any) -> Transform:
        return PhotometricTransform(self, param=param)

    def _get_augment_params(self, img: np.ndarray) -> Any:
        return None if self._limits is None else self.rng.uniform(*self._limits)

    def _augment_coords(self, coords: np.ndarray, param: Any) -> np.ndarray:
        return coords


class AugmentorList(ImageAugmentor):
    """Applies augmentors one after the other; each sees what the one before it made."""

    def __init__(self, augmentors: Sequence[ImageAugmentor]) -> None:
        self.augmentors = self._as_augmentors(augmentors)

    @property
    def augs(self) -> List[ImageAugmentor]:
        """The name of 2017 for `augmentors`."""
        return self.augmentors

    def _parts(self) -> Sequence[ImageAugmentor]:
        return self.augmentors

    def get_transform(self, img: np.ndarray) -> Transform:
        return self._augment_in_turn(img)[1]

    def augment_return_params(self, d: np.ndarray) -> Tuple[np.ndarray, Transform]:
        if type(self).get_transform is not AugmentorList.get_transform:
            return super().augment_return_params(d)
        return self._augment_in_turn(d)

    def _augment_in_turn(self, d: np.ndarray) -> Tuple[np.ndarray, Transform]:
        _check_image(d)
        tfms = []
        for aug in self.augmentors:
            d, tfm = aug.augment_return_params(d)
            tfms.append(tfm)
        return d, TransformList(tfms)


def _of_param(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, *args: function(self.param, *args)


class _TransformOf2017(Transform):
    """Calls the methods of an augmentor of 2017, and unpacks and compares as what it drew."""

    __iter__, __len__, __getitem__ = _of_param(iter), _of_param(len), _of_param(operator.getitem)
    __bool__, __int__, __float__ = _of_param(bool), _of_param(int), _of_param(float)
    __eq__ = _of_param(operator.eq)
    __hash__ = Transform.__hash__

    def __init__(self, augmentor: ImageAugmentor, param: Any) -> None:
        vars(self).update(augmentor=augmentor, param=param, _name=type(augmentor).__name__)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_drawn():
            setattr(self.param, name, value)  # which is applied
        else:
            super().__setattr__(name, value)

    def apply_image(self, img: np.ndarray) -> np.ndarray:
        return self.augmentor._augment(img, self.param)

    def apply_coords(self, coords: np.ndarray) -> np.ndarray:
        if not self._is_drawn() and not self._moves_coords():
            log_once(
                f"{self._name} leaves coordinates as they are: define _augment_coords(), or "
                "derive it from PhotometricAugmentor if it moves no pixels.",
                "warning",
            )
        return self.augmentor._augment_coords(coords, self.param)

    def apply_box(self, box: np.ndarray) -> np.ndarray:
        follows = self._is_drawn() and not self._moves_coords()
        return self.param.apply_box(box) if follows else super().apply_box(box)

    def apply_segmentation(self, segmentation: np.ndarray) -> np.ndarray:
        drawn = self.param if self._is_drawn() else super()
        return drawn.apply_segmentation(segmentation)

    def _is_drawn(self) -> bool:
        return isinstance(self.param, Transform)

    def _moves_coords(self) -> bool:
        return type(self.augmentor)._augment_coords is not ImageAugmentor._augment_coords

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name.startswith("apply_") and not self._is_drawn():
            return super().__getattr__(name)
        return getattr(self.param, name)


def _unwrap(augmentor: ImageAugmentor, param: Any) -> Any:
    return param.param if _is_made_by(augmentor, param) else param


def _is_made_by(augmentor: ImageAugmentor, param: Any) -> bool:
    """Whether a transform calls the methods of an augmentor."""
    by_methods = isinstance(param, (_TransformOf2017, PhotometricTransform))
    return by_methods and vars(param).get("augmentor", vars(param).get("func")) is augmentor


def _check_image(img: Any) -> None:
    """Raises TypeError or ValueError for None, a file name, or an array that is not an image."""
    if img is None or isinstance(img, (str, bytes, os.PathLike)):
        raise TypeError(f"An image is a numpy array, got {type(img).__name__}.")
    if not isinstance(img, np.ndarray):
        return  # some augmentors of scripts take it
    if img.ndim not in (2, 3) or not img.size:
        raise ValueError(f"An image is [h, w] or [h, w, c], and not empty; got {img.shape}.")
    if img.dtype.kind not in "uif" or not img.dtype.isnative:  # OpenCV would misread the bytes
        raise TypeError(f"An image is of uint8 or floats, and not byte-swapped; got {img.dtype}.")
