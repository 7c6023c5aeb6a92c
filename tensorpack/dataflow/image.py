"""Flows that augment the images of datapoints, and all that lies on them; see `dataflow.imgaug`.

What an augmentor draws for a datapoint depends on the seed, on the pass and on the position of the
datapoint in it, and on nothing else. So it is the same in however many processes a strict
`MultiProcessRunner` makes the pass, and after a run was resumed.
"""

import sys
import threading
from typing import Any, Dict, Hashable, Iterable, Iterator, List, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.utils import logger
from tensorpack.utils.checks import as_list
from tensorpack.utils.rng import rng_state, set_rng_state

from ._datapoint import note_datapoint
from ._flow import ProcessLocal, check_count, check_state
from .base import DataFlow, ProxyDataFlow, ResumableDataFlow, RNGDataFlow
from .image_files import ImageFromFile
from .imgaug import AugmentationError, AugmentorList, ImageAugmentor, Target, Transform
from .map import DatapointMap, component_of

__all__ = [
    "AugmentImageComponent",
    "AugmentImageComponents",
    "AugmentImageCoordinates",
    "ImageFromFile",
]

_LOGGED_FIRST, _LOGGED_EVERY = 9, 100

_Augmentors = Union[ImageAugmentor, Sequence[ImageAugmentor]]
_Index = Union[int, Hashable]
_Targets = List[Tuple[_Index, Target]]
_Key = np.ndarray


class AugmentImageComponents(ResumableDataFlow, RNGDataFlow, DatapointMap):
    """Augments images of a datapoint, and coordinates, boxes and masks on them, in the same way.

    All is drawn from the first image. Further images must have its height and width. Everything
    else of a datapoint is left as it is; a tuple comes out as a list.

    What the augmentors draw comes from the flow, which lends them its random stream for each
    datapoint. Two flows in two threads should not share augmentors: they would share draws.

    Attributes:
      augs: the augmentors, as an `AugmentorList`.
    """

    # `_position` is the random stream at the begin of the pass, and how many datapoints of the
    # wrapped flow were taken in it.

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
        targets: Optional[Dict[_Index, Any]] = None,
    ) -> None:
        """
        Args:
          ds: the flow that gives the datapoints; lists or dicts.
          augmentors: the augmentors, applied one after the other.
          index: positions or keys of the images, at least one.
          coords_index: of coordinates, floats `[N, 2]` of (x, y), see `imgaug.Transform`.
          copy: whether the augmentors get a copy. Without, those that write to their image write
            into what `ds` gave, and a result may be a view of it.
          catch_exceptions: whether a datapoint that an augmentor fails on is dropped: the first 9
            in a pass and every hundredth are logged. `len` counts them. A datapoint without one
            of the components is an error all the same.
          box_index: of boxes, floats `[N, 4]` of (x1, y1, x2, y2).
          mask_index: of masks, a label for each pixel, `[h, w]` or `[h, w, c]`.
          targets: instead of the four: what the components are, by position or key; "image",
            "mask", "keypoints", "boxes", or an `imgaug.Target` with options.

        Raises:
          TypeError: an augmentor is none, or an index is a single position or key.
          ValueError: there is no image, or the first one has options: it has the augmentors'.
        """
        super().__init__(ds)
        coords: Any = coords_index
        if isinstance(coords, bool):  # 2017: (ds, augmentors, index, copy)
            coords, copy = (), coords
        if targets is None:
            targets = {
                **dict.fromkeys(as_list(self, "index", index), "image"),
                **dict.fromkeys(as_list(self, "coords_index", coords), "keypoints"),
                **dict.fromkeys(as_list(self, "box_index", box_index), "boxes"),
                **dict.fromkeys(as_list(self, "mask_index", mask_index), "mask"),
            }
        elif tuple(index) != (0, 1) or coords or box_index or mask_index:
            raise ValueError(f"{type(self).__name__} takes targets or indices, got both.")
        self._first, self._others = _first_image(self, targets)
        given: Any = augmentors
        self.augs = given if isinstance(given, AugmentorList) else AugmentorList(given)
        self.copy, self.catch_exceptions = copy, catch_exceptions
        self._stream: ProcessLocal[_Stream] = ProcessLocal(_Stream)
        self._stream.get()  # now, as two threads could make two

    def reset_state(self) -> None:
        super().reset_state()
        self.augs.reset_state()
        self._stream.get()

    def __iter__(self) -> Iterator[Any]:
        """Begins a pass.

        Raises (while iterating):
          AugmentationError: an augmentor failed; names it, the image, and the datapoint.
          IndexError, KeyError: a datapoint has not one of the components.
          TypeError: an image is none.
        """
        begin, key = self._begin()
        _, count = self._take_loaded() or (None, 0)
        self._position = begin, count
        return self._pass(begin, key, iter(self.ds), count)

    def _begin(self) -> Tuple[Dict[str, Any], _Key]:
        """Returns the random stream before a new pass, and the key of all draws in the pass."""
        begin = rng_state(self.rng)
        return begin, self.rng.randint(0, 2**64, size=2, dtype=np.uint64)

    def _pass(
        self, begin: Dict[str, Any], key: _Key, datapoints: Iterator[Any], first: int
    ) -> Iterator[Any]:
        skipped = _Skipped(self)
        for number, datapoint in enumerate(datapoints, first):
            self._position = begin, number + 1
            result = self._augmented(datapoint, key, number, skipped)
            if result is not None:
                yield result

    def iterate_share(
        self, first: int, step: int, before: Any, block: Optional[int] = 1
    ) -> Iterator[Tuple[int, Any]]:
        begin, key = self._begin()
        skipped = _Skipped(self)
        for number, datapoint in ProxyDataFlow.iterate_share(self, first, step, before, block):
            if datapoint is not None:
                datapoint = self._augmented(datapoint, key, number, skipped)
            yield number, datapoint
        self._position, self._loaded = (begin, 0), None

    def state_dict(self) -> Dict[str, Any]:
        begin, count = self._position or (rng_state(self.rng), 0)
        return {"ds": self._state_of_ds(), "rng": begin, "count": count}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        check_state(self, state, ["ds", "rng", "count"])
        check_count(self, state["count"], sys.maxsize)
        self.ds.load_state_dict(state["ds"])
        set_rng_state(self.rng, state["rng"])
        self._load((state["rng"], state["count"]))

    def _augmented(self, datapoint: Any, key: _Key, number: int, skipped: "_Skipped") -> Any:
        """Returns a new datapoint, or None if it failed and that is to be skipped."""
        name = type(self).__name__
        stream = self._stream.get()
        try:
            image = component_of(self, datapoint, self._first)
            others = [component_of(self, datapoint, index) for index, _ in self._others]
            try:
                with stream.lock:
                    self.augs.use_rng(stream.at(key, number))
                    image, tfm = self.augs.augment_return_params(self._own(image))
                others = [
                    self._transformed(tfm, target, index, self._own(each))
                    for (index, target), each in zip(self._others, others)
                ]
            except Exception as error:
                if not self.catch_exceptions:
                    raise
                skipped.log(error, number)
                return None
        except Exception as error:
            note_datapoint(error, name, number, datapoint, self.last_file, "counted from 0")
            raise
        result: Any = dict(datapoint) if isinstance(datapoint, dict) else list(datapoint)
        result[self._first] = image
        for (index, _), each in zip(self._others, others):
            result[index] = each
        return result

    def _own(self, component: Any) -> Any:
        """Returns a component that augmentors may write to."""
        return component.copy() if self.copy and isinstance(component, np.ndarray) else component

    def _transformed(self, tfm: Transform, target: Target, index: _Index, component: Any) -> Any:
        try:
            return target.apply(tfm, component)
        except Exception as error:
            what = getattr(component, "shape", type(component).__name__)
            raise AugmentationError(
                f"{target.method}() failed on component {index!r}, {what} "
                f"{getattr(component, 'dtype', '')}, with what {self.augs} drew from component "
                f"{self._first!r}: {error}"
            ) from error


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
        """
        Args:
          ds, augmentors, copy, catch_exceptions: as in `AugmentImageComponents`.
          index: position or key of the image.

        Raises:
          TypeError: an augmentor is none, or `index` is a list.
        """
        _check_single(self, index=index)
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
        """
        Args:
          ds, augmentors, copy, catch_exceptions: as in `AugmentImageComponents`.
          img_index: position or key of the image.
          coords_index: of the coordinates, floats `[N, 2]` of (x, y).

        Raises:
          TypeError: an augmentor is none, or an index is a list.
        """
        _check_single(self, img_index=img_index, coords_index=coords_index)
        super().__init__(ds, augmentors, [img_index], [coords_index], copy, catch_exceptions)


def _first_image(flow: DataFlow, given: Dict[_Index, Any]) -> Tuple[_Index, _Targets]:
    """Returns the index of the image that all is drawn from, and the other targets."""
    targets = {at: each if isinstance(each, Target) else Target(each) for at, each in given.items()}
    for index, target in targets.items():
        if target.kind == "image":
            if target.has_options:
                raise ValueError(
                    f"Give interp and fill of {index!r}, the first image, to augmentors."
                )
            return index, [each for each in targets.items() if each[0] != index]
    raise ValueError(f"{type(flow).__name__} needs an image in index or targets, got none.")


def _check_single(flow: DataFlow, **indices: Any) -> None:
    for name, index in indices.items():
        if isinstance(index, (list, set, dict)):
            raise TypeError(
                f"{type(flow).__name__} takes one position or key as {name}, got {index!r}. Use "
                "AugmentImageComponents for several."
            )


class _Stream:
    """A random stream that begins at a place of its own for each datapoint of each pass.

    It is a counter-based one (Philox 4x64, Salmon et al. 2011), so a place costs nothing to go to:
    the key is that of the pass, the upper half of the counter the number of the datapoint.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()  # held while it is in use
        self._rng = np.random.RandomState(np.random.Philox(0))
        self._counter, buffer = np.zeros(4, np.uint64), np.zeros(4, np.uint64)
        self._state = {
            "bit_generator": "Philox",
            "state": {"counter": self._counter, "key": None},
            "buffer": buffer,
            "buffer_pos": 4,  # nothing is left in it
            "has_uint32": 0,
            "uinteger": 0,
            "has_gauss": 0,
            "gauss": 0.0,
        }

    def at(self, key: _Key, number: int) -> np.random.RandomState:
        """Returns the stream of a datapoint; valid until the next call."""
        self._state["state"]["key"] = key  # type: ignore[index]
        self._counter[2] = number
        self._rng.set_state(self._state)
        return self._rng


class _Skipped:
    """Counts the datapoints that a pass skips, and logs some of them."""

    def __init__(self, flow: DataFlow) -> None:
        self._name = type(flow).__name__
        self._count = 0

    def log(self, error: Exception, number: int) -> None:
        self._count += 1
        if self._count <= _LOGGED_FIRST or self._count % _LOGGED_EVERY == 0:
            text = f"{type(error).__name__}: {error}"
            logger.warning(
                "%s", f"{self._name} skipped datapoint {number}, {self._count} in this pass: {text}"
            )
