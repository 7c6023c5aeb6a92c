"""Checks every datapoint against the inputs of the model, before TensorFlow sees it.

Without it a None becomes NaN, a float becomes an integer, and a missing component is not noticed.
"""

from collections.abc import Mapping
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

__all__ = ["DatapointChecker"]

_FAMILIES = {"b": "bool", "i": "integer", "u": "integer", "f": "float", "c": "complex"}


class DatapointChecker:
    """A function from a datapoint to the arrays to be fed, one for each input of the model.

    Right arrays are returned as they are. float64 becomes float32, int64 becomes int32 and the
    like, where all values fit, and the log says so once; bool and integers are widened as numpy's
    safe casts do. A user's NaN passes. All errors of a datapoint are reported together. An
    array passes at once if it has the dtype and shape of an earlier one that passed.

    Args:
      signature: a `tf.TensorSpec` with a name for each component.
      cut: whether components behind those of the signature are left out, with one warning.
    """

    def __init__(self, signature: Sequence[tf.TensorSpec], cut: bool = False) -> None:
        self._components = [_Component(index, spec) for index, spec in enumerate(signature)]
        self._names = [spec.name for spec in signature]
        self._cut = cut
        self._cut_logged = False
        self._index = 0

    def __call__(self, datapoint: Any) -> List[np.ndarray]:
        """Returns the arrays to feed, in the order of the signature.

        Args:
          datapoint: a list or tuple of arrays, numbers or (nested) lists, or a dict of them by
            input name.

        Raises:
          TypeError: a component is None, holds objects, or would change its kind (float to int, str
            to number).
          ValueError: the number of components, a shape, or the range of a number is wrong.
        """
        arrays: List[np.ndarray] = []
        found: List[str] = []
        first: Optional[Exception] = None
        for component, value in zip(self._components, self._values(datapoint)):
            if (
                type(value) is np.ndarray
                and value.shape == component.seen
                and value.dtype == component.dtype
            ):
                arrays.append(value)
                continue
            try:
                arrays.append(component.convert(value))
            except (TypeError, ValueError) as error:
                first = first or error
                found.append(
                    f"Datapoint {self._index}, {component}: the model takes {component.expected}, "
                    f"the dataflow gave {_describe(value)}: {error}."
                )
        if first is not None:
            kind = TypeError if isinstance(first, TypeError) else ValueError
            raise kind("\n".join(found)) from first
        self._index += 1
        return arrays

    def _values(self, datapoint: Any) -> Sequence[Any]:
        if isinstance(datapoint, (list, tuple)):
            if len(datapoint) == len(self._names):
                return datapoint
            if self._cut and len(datapoint) > len(self._names):
                self._log_cut(len(datapoint))
                return datapoint  # the caller takes as many as there are inputs
            got = f"{len(datapoint)} components"
        elif isinstance(datapoint, Mapping):
            if datapoint.keys() == set(self._names):
                return [datapoint[name] for name in self._names]
            got = f"components named {sorted(map(str, datapoint))}"
        else:
            raise TypeError(
                f"Datapoint {self._index} is {_describe(datapoint)}. A dataflow must yield lists "
                f"(or tuples, or dicts), here with one component for each of {self._names}."
            )
        raise ValueError(
            f"Datapoint {self._index} has {got}, the model takes {len(self._names)} "
            f"({', '.join(self._names)}). Make the model's inputs and the dataflow agree."
        )

    def _log_cut(self, got: int) -> None:
        if not self._cut_logged:
            self._cut_logged = True
            logger.warning(
                f"Datapoints have {got} components, the model takes {len(self._names)} "
                f"({', '.join(self._names)}): those behind them are left out."
            )


class _Component:
    """Turns the values of one component into arrays that can be fed.

    Attributes:
      seen: the shape of an array that passed; None before that, and always for strings, whose
        elements are checked each time.
    """

    def __init__(self, index: int, spec: tf.TensorSpec) -> None:
        self.name = spec.name
        self.dtype = np.dtype(spec.dtype.as_numpy_dtype)
        self.seen: Optional[Tuple[int, ...]] = None
        self._index = index
        self._dims = None if spec.shape.ndims is None else spec.shape.as_list()
        self._is_string = spec.dtype == tf.string
        self._conversion_logged = False
        self.expected = f"{spec.dtype.name} {'of any shape' if self._dims is None else self._dims}"

    def __str__(self) -> str:
        return f"component {self._index} ({self.name!r})"

    def convert(self, value: Any) -> np.ndarray:
        """Returns `value` as an array of the right dtype and shape; raises as the checker does."""
        array = _to_strings(value) if self._is_string else _to_numbers(value)
        self._check_shape(array.shape)
        if self._is_string:
            return array
        converted = _cast(array, self.dtype)
        if array is value and not np.can_cast(array.dtype, self.dtype, "safe"):
            self._log_conversion(array.dtype)  # a Python number has no dtype to be corrected
        self.seen = array.shape
        return converted

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
                f"Datapoints have {source} in {self} where the model takes {self.dtype}: "
                "converting them. Yield the latter to save the time."
            )


def _cast(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns `array` as `dtype` without changing its values, itself if it is that already.

    Numbers may change to a wider dtype of any kind (bool to int, int to float), to a narrower one
    of the same kind, and integers to a float that holds all of them exactly. NaN and infinity stay
    what they are. Raises as the checker does.
    """
    if array.dtype == dtype:
        return array
    source, target = _FAMILIES.get(array.dtype.kind), _FAMILIES.get(dtype.kind)
    if source is None:
        raise TypeError(f"{array.dtype} is not a dtype of numbers")
    if np.can_cast(array.dtype, dtype, "safe"):
        return array.astype(dtype)
    if source == "integer" and target in ("integer", "float"):
        return _narrow_integers(array, dtype)
    if source == target or (source == "float" and target is None):  # None: bfloat16
        return _narrow_floats(array, dtype)
    raise TypeError(
        f"a cast from {array.dtype} to {dtype} changes what the values are: do it in the dataflow"
    )


def _narrow_integers(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if array.size:
        if dtype.kind == "f":
            highest = 2 ** (np.finfo(dtype).nmant + 1)  # up to here every integer is exact
            lowest = -highest
        else:
            lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
        for value in (int(array.min()), int(array.max())):
            if not lowest <= value <= highest:
                raise ValueError(f"{value} is out of the range of {dtype}, [{lowest}, {highest}]")
    return array.astype(dtype)


def _narrow_floats(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    with np.errstate(all="ignore"):
        narrow = array.astype(dtype)
    # numpy's functions do not know bfloat16 everywhere
    finite = np.isfinite(narrow if dtype.kind in "fc" else narrow.astype(np.float32))
    if not finite.all():
        lost = np.isfinite(array) & ~finite
        if lost.any():
            raise ValueError(f"{array[lost].flat[0]} is out of the range of {dtype}")
    return narrow


def _to_numbers(value: Any) -> np.ndarray:
    if value is None:
        raise TypeError("None is not data")
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise TypeError("masked values are not data: fill them in the dataflow")
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


def _to_strings(value: Any) -> np.ndarray:
    """Returns an object array of `str` and `bytes`, which is how TensorFlow takes strings."""
    array = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)
    if array.dtype.kind in "SU":
        return array.astype(object)
    if array.dtype.kind != "O":
        raise TypeError(
            f"a cast from {array.dtype} to str changes what the values are: do it in the dataflow"
        )
    for each in array.flat:
        if not isinstance(each, (str, bytes)):
            kind = "None" if each is None else f"a {type(each).__name__}"
            raise TypeError(f"only str and bytes are strings, there is {kind} among them")
    return array


def _describe(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, (np.ndarray, np.generic)):
        return f"{value.dtype} {list(value.shape)}"
    if isinstance(value, (list, tuple, dict, str, bytes)):
        return f"a {type(value).__name__} of length {len(value)}"
    return f"a {type(value).__name__}"
