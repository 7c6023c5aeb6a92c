"""One component of a datapoint: what the model's input needs, and how a value becomes that."""

from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

from .casting import cast, is_widening, to_strings

__all__ = ["Component"]


class Component:
    """Turns the values of one component into arrays that can be fed.

    Args:
      index: the component's place in the datapoint.
      spec: what the model wants there.

    Attributes:
      index: as given.
      name: the input's name.
      dtype: the numpy dtype of the arrays.
      seen: the shape of an array that was found right; one like it, of dtype `dtype`, needs no
        further look. None before there was one, and always None for strings, whose elements need a
        look each time.
    """

    def __init__(self, index: int, spec: tf.TensorSpec) -> None:
        self.index = index
        self.name = spec.name
        self.dtype = np.dtype(spec.dtype.as_numpy_dtype)
        self.seen: Optional[Tuple[int, ...]] = None
        self._dims: Optional[List[Optional[int]]] = None
        if spec.shape.ndims is not None:
            self._dims = spec.shape.as_list()
        self._is_string = spec.dtype == tf.string
        self._conversion_logged = False
        self.expected = f"{spec.dtype.name} {'of any shape' if self._dims is None else self._dims}"

    def convert(self, value: Any) -> np.ndarray:
        """Returns `value` as an array of the right dtype and shape.

        Raises:
          TypeError: it is None, of objects, or of numbers of another kind.
          ValueError: its shape is wrong, or a number is out of range.
        """
        array = to_strings(value) if self._is_string else _to_numbers(value)
        self._check_shape(array.shape)
        if self._is_string:
            return array
        converted = cast(array, self.dtype)
        if array is value and not is_widening(array.dtype, self.dtype):
            self._log_conversion(array.dtype)  # a Python number has no dtype to be corrected
        self.seen = array.shape
        return converted

    def describe(self) -> str:
        """Names the component for an error message."""
        return f"component {self.index} ({self.name!r})"

    def _check_shape(self, shape: Sequence[int]) -> None:
        dims = self._dims
        if dims is None:
            return
        if len(shape) != len(dims):
            raise ValueError(f"it has {len(shape)} dimensions instead of {len(dims)}")
        for axis, (size, needed) in enumerate(zip(shape, dims)):
            if needed is not None and size != needed:
                raise ValueError(f"its size along axis {axis} is {size} instead of {needed}")

    def _log_conversion(self, source: np.dtype) -> None:
        if not self._conversion_logged:
            self._conversion_logged = True
            logger.info(
                f"Datapoints have {source} in {self.describe()} where the model takes "
                f"{self.dtype}: converting "
                "them. Yield the latter to save the time."
            )


def _to_numbers(value: Any) -> np.ndarray:
    if value is None:
        raise TypeError("None is not data")
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise TypeError("what a masked array hides has no value: fill it in the dataflow")
    try:
        array = np.asarray(value)
    except (NotImplementedError, TypeError, ValueError) as error:
        raise TypeError(f"numpy makes no array of it ({error})") from error
    if array.dtype.kind == "O":
        what = "None among its values" if any(each is None for each in array.flat) else "objects"
        raise TypeError(
            f"it is an array of objects ({what}): its values must be numbers, its rows equally long"
        )
    return array
