"""Flows that decode, encode and augment the images of datapoints; see `dataflow.imgaug`."""

import functools
from typing import Any, Dict, Hashable, Iterable, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils import logger
from tensorpack.utils.checks import as_list

from .base import DataFlow
from .files.images import MOST_PIXELS, check_decoding, decode_image
from .imgaug import AugmentationError, AugmentorList, ImageAugmentor, Transform
from .map import MapDataComponent, RandomMap, component_of, summary_of

_LOGGED_FIRST, _LOGGED_EVERY = 9, 100

_Augmentors = Union[ImageAugmentor, Sequence[ImageAugmentor]]
_Index = Union[int, Hashable]


class AugmentImageComponents(RandomMap):
    """Augments images of a datapoint, and coordinates, boxes and masks on them, in the same way.

    All is drawn from the first image. Further images must have its height and width. Everything
    else of a datapoint is left as it is; a tuple comes out as a list.

    The augmentors draw from the flow's random stream. Two flows in two threads should not share
    augmentors: they would share draws.

    While iterating, an augmentor that fails raises an `AugmentationError`, which names it, the
    image and the datapoint; a component that is missing an `IndexError` or `KeyError`.

    Attributes:
      augs: the augmentors, as an `AugmentorList`.
    """

    def __init__(
        self,
        ds: DataFlow,
        augmentors: _Augmentors,
        index: Iterable[_Index] = (0, 1),
        coords_index: Union[Iterable[_Index], bool] = (),
        copy: bool = True,
        catch_exceptions: bool = False,
        *,
        box_index: Iterable[_Index] = (),
        mask_index: Iterable[_Index] = (),
    ) -> None:
        """
        Args:
          ds: gives lists, tuples or dicts.
          augmentors: applied one after the other.
          index: positions or keys of the images, at least one.
          coords_index: of coordinates, floats `[N, 2]` of (x, y), see `imgaug.Transform`.
          copy: whether the augmentors get a copy. Without, those that write to their image write
            into what `ds` gave, and a result may be a view of it.
          catch_exceptions: whether a datapoint that an augmentor fails on is dropped: the first 9
            in a pass and every hundredth are logged. `len` counts them. A datapoint without one
            of the components is an error all the same.
          box_index: of boxes, floats `[N, 4]` of (x1, y1, x2, y2).
          mask_index: of masks, a label for each pixel, `[h, w]` or `[h, w, c]`.
        """
        super().__init__(ds)
        coords: Any = coords_index
        if isinstance(coords, bool):  # 2017: (ds, augmentors, index, copy)
            coords, copy = (), coords
        self._first, *images = as_list(self, "index", index)
        self._methods: Dict[_Index, str] = {  # of the transform, for each further component
            **dict.fromkeys(images, "apply_image"),
            **dict.fromkeys(as_list(self, "coords_index", coords), "apply_coords"),
            **dict.fromkeys(as_list(self, "box_index", box_index), "apply_box"),
            **dict.fromkeys(as_list(self, "mask_index", mask_index), "apply_segmentation"),
        }
        augs: Any = augmentors
        self.augs = augs if isinstance(augs, AugmentorList) else AugmentorList(augs)
        self.copy, self.catch_exceptions = copy, catch_exceptions

    def reset_state(self) -> None:
        super().reset_state()
        self.augs.reset_state()

    def _begin(self) -> Tuple[Dict[str, Any], np.ndarray]:
        self._skipped = 0
        return super()._begin()

    def _draw(self, datapoint: Any, number: int, rng: np.random.RandomState) -> Any:
        image = component_of(self, datapoint, self._first)
        components = [component_of(self, datapoint, index) for index in self._methods]
        try:
            self.augs.use_rng(rng)
            size = getattr(image, "shape", ())[:2]
            image, tfm = self.augs.augment_return_params(self._writable(image))
            components = [
                self._apply_to(tfm, index, self._writable(component), size)
                for index, component in zip(self._methods, components)
            ]
        except Exception as error:
            if not self.catch_exceptions:
                raise
            self._skipped += 1
            if self._skipped <= _LOGGED_FIRST or self._skipped % _LOGGED_EVERY == 0:
                what = f"datapoint {number}, {self._skipped} in this pass"
                reason = f"{type(error).__name__}: {error}"
                logger.warning("%s", f"{type(self).__name__} skipped {what}: {reason}")
            return None
        result: Any = dict(datapoint) if isinstance(datapoint, dict) else list(datapoint)
        for index, component in zip([self._first, *self._methods], [image, *components]):
            result[index] = component
        return result

    def _writable(self, component: Any) -> Any:
        return component.copy() if self.copy and isinstance(component, np.ndarray) else component

    def _apply_to(self, tfm: Transform, index: _Index, component: Any, size: Any) -> Any:
        method = self._methods[index]
        if method == "apply_segmentation" and size and component.shape[:2] != size:
            raise AugmentationError(
                f"The mask {index!r}, {summary_of(component)}, must have the height and width of "
                f"component {self._first!r}, {size}."
            )
        return getattr(tfm, method)(component)


class AugmentImageComponent(AugmentImageComponents):
    """Augments one image of a datapoint; see `AugmentImageComponents`."""

    def __init__(
        self,
        ds: DataFlow,
        augmentors: _Augmentors,
        index: _Index = 0,
        copy: bool = True,
        catch_exceptions: bool = False,
    ) -> None:
        """`index` is the position or key of the image."""
        super().__init__(ds, augmentors, [index], [], copy, catch_exceptions)
        self.index = index


class AugmentImageCoordinates(AugmentImageComponents):
    """Augments an image and coordinates on it; see `AugmentImageComponents`."""

    def __init__(
        self,
        ds: DataFlow,
        augmentors: _Augmentors,
        img_index: _Index = 0,
        coords_index: _Index = 1,
        copy: bool = True,
        catch_exceptions: bool = False,
    ) -> None:
        """The indices are positions or keys; coordinates are floats `[N, 2]` of (x, y)."""
        super().__init__(ds, augmentors, [img_index], [coords_index], copy, catch_exceptions)


class DecodeImageComponent(MapDataComponent):
    """Decodes a component that is the content of an image file, such as a JPEG: to uint8
    `[h, w, 3]`, or `[h, w, 1]` in grey. A `DamagedFile` is raised while iterating if it is not one.
    """

    def __init__(
        self,
        ds: DataFlow,
        index: _Index = 0,
        channel: int = 3,
        *,
        bgr: bool = True,
        max_pixels: Optional[int] = MOST_PIXELS,
    ) -> None:
        """
        Args:
          index: position or key of the component, bytes or a uint8 array.
          channel, max_pixels: see `ImageFromFile`.
          bgr: whether colours are in OpenCV's order, as from `cv2.imdecode` and `dataset.ILSVRC12`;
            False for RGB, as from `ImageFromFile`.
        """
        check_decoding(channel)
        decode = functools.partial(_decode, channel=channel, bgr=bgr, max_pixels=max_pixels)
        super().__init__(ds, decode, index)


def _decode(data: Any, channel: int, bgr: bool, max_pixels: Optional[int]) -> np.ndarray:
    data = data.tobytes() if getattr(data, "dtype", None) == np.uint8 else data
    if not isinstance(data, bytes):
        raise TypeError(f"An encoded image is bytes or a uint8 array, got {summary_of(data)}.")
    return decode_image(data, "The component", channel, bgr, max_pixels)
