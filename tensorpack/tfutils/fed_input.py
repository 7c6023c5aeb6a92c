"""Makes arrays that can be fed of what is given for one input, without changing its values.

TensorFlow itself makes NaN of None, and 0 of 0.9 where the input has integers. The datapoints of a
trainer (`input_source`) and what predictors are called with (`prepared`) are checked by this rule.
"""

from contextlib import suppress
from typing import Any, Optional, Sequence, Tuple

import numpy as np

from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger

NOT_A_BATCH = ", as an example that is in no batch"  # ends an error
_KINDS = {"b": "bool", "i": "integer", "u": "integer", "f": "floating", "c": "complex"}


class FedInput:
    """Turns the values that are given for one input into arrays that can be fed."""

    def __init__(self, name: str, dtype: tf.DType, shape: tf.TensorShape) -> None:
        self._name = name
        self._dtype = np.dtype(dtype.as_numpy_dtype)
        self._seen: Optional[Tuple[int, ...]] = None  # a right shape; strings are checked each time
        self._dims = None if shape.ndims is None else shape.as_list()
        self._is_string = dtype == tf.string
        self._logged = False
        self._expected = f"{dtype.name} {'of any shape' if self._dims is None else self._dims}"

    def feed(self, value: Any, giver: str = "the call") -> np.ndarray:
        """Returns `value` as an array of the right dtype and shape, itself if it is that already.

        Another dtype is converted as `cast` does: what `Session.run` takes is taken, such as 1 for
        a bool, 2.0 or "25" for an integer, float64 for float32, unless a value would change. NaN
        passes. The log says once that an array is converted.

        Raises:
          TypeError: it is None, holds what is not a number, or would change its kind (0.5 to int).
          ValueError: the shape, or the range of a number is wrong.
        """
        if type(value) is np.ndarray and value.shape == self._seen and value.dtype == self._dtype:
            return value
        try:
            return self._convert(value)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                f"{self._name}: the model takes {self._expected}, {giver} gave {describe(value)}: "
                f"{error}."
            ) from error

    def _convert(self, value: Any) -> np.ndarray:
        array = to_strings(value) if self._is_string else to_numbers(value, self._dtype)
        self._check_shape(array.shape)
        if self._is_string:
            return array
        converted = cast(array, self._dtype)
        # A Python number has no dtype to be corrected.
        if array is value and not (self._logged or np.can_cast(array.dtype, self._dtype, "safe")):
            self._logged = True
            to_integers = kind_of(array.dtype) != "integer" == kind_of(self._dtype)
            (logger.warning if to_integers else logger.info)(
                f"There is {array.dtype} in {self._name} where the model takes {self._dtype}: "
                "converting it. Give the latter to save the time."
            )
        self._seen = array.shape
        return converted

    def _check_shape(self, shape: Sequence[int]) -> None:
        dims = self._dims
        if dims is None:
            return
        if len(shape) != len(dims):
            single = NOT_A_BATCH if len(shape) + 1 == len(dims) else ""
            raise ValueError(f"it has {len(shape)} dimensions instead of {len(dims)}{single}")
        for axis, (size, needed) in enumerate(zip(shape, dims)):
            if needed is not None and size != needed:
                raise ValueError(f"its size along axis {axis} is {size} instead of {needed}")


def cast(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Returns `array` as `dtype` without changing its values, itself if it is that already.

    Floats are rounded to a narrower type; any other cast must be exact for each of the values, such
    as 0 and 1 to bool, 2.0 or "25" to an integer. Raises ValueError if it is not, TypeError if the
    values would change their kind as well.
    """
    if array.dtype == dtype:
        return array
    array = to_numbers(array, dtype) if array.dtype == object else array
    source, target = kind_of(array.dtype), kind_of(dtype)
    if array.dtype.kind in "SU" and target in ("integer", "floating"):
        number = np.frompyfunc(int if target == "integer" else float, 1, 1)
        return cast(to_numbers(number(array.astype(object)), dtype), dtype)
    if array.dtype == bool and target == "floating":
        array = array.astype(np.float32)  # bfloat16 of TensorFlow 1.15 is made of no bool
    if np.can_cast(array.dtype, dtype, "safe"):
        return array.astype(dtype)
    if target == "complex" != source:
        return cast(array, np.empty(0, dtype).real.dtype).astype(dtype)
    if "other" in (source, target) or source == "complex" != target:
        raise TypeError(
            f"a cast from {array.dtype} to {dtype} changes what the values are: do it first"
        )
    with np.errstate(all="ignore"):
        result = array.astype(dtype)
        unchanged = _is_unchanged(array, result, source == target != "integer")
    if unchanged.all():
        return result
    kind, first = ValueError if source == target else TypeError, array[~unchanged].flat[0]
    raise kind(f"a cast from {array.dtype} to {dtype} changes {first}: do it first")


def _is_unchanged(array: np.ndarray, result: np.ndarray, may_round: bool) -> np.ndarray:
    """Returns which values have survived a cast."""
    # numpy's functions do not know bfloat16 everywhere
    array, result = (
        side if side.dtype.kind in "biufc" else side.astype(np.float32) for side in (array, result)
    )
    if may_round:
        unchanged = np.isfinite(result)
        return unchanged if unchanged.all() else unchanged | ~np.isfinite(array)
    unchanged = (result.astype(array.dtype) == array) & ((result < 0) == (array < 0))
    for whole, real in (array, result), (result, array):
        if whole.dtype.kind in "iu" and real.dtype.kind == "f":
            # 2 ** 63 may come back as the max
            unchanged &= real < float(np.iinfo(whole.dtype).max + 1)
    return unchanged


def kind_of(dtype: np.dtype) -> str:
    """Returns whether a dtype is "bool", "integer", "floating", "complex" or "other"."""
    # NumPy itself has no bfloat16, and does not know that it is one of floating point
    return _KINDS.get(dtype.kind) or ("floating" if "float" in dtype.name else "other")


def to_numbers(value: Any, dtype: np.dtype) -> np.ndarray:
    """Returns what is given for numbers of `dtype` as an array, not cast yet."""
    if value is None:
        raise TypeError("None is not data")
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise TypeError("masked values are not data: fill them first")
    try:
        array, rows = np.asarray(value), value
        if array.dtype == object:
            if any(item is None for item in array.flat):
                raise TypeError("there is None among its values")
            rows = array.tolist()
            array = np.asarray(rows)  # numbers of Python have a dtype
            array = array.astype(np.float64) if array.dtype == object else array
        if array is not rows and array.dtype == np.float64 and dtype.kind in "iu":
            # numpy has rounded integers beside floats, or of two types
            with np.errstate(invalid="ignore"), suppress(OverflowError, ValueError):
                if (abs(array) >= 2**53).any():
                    exact = np.asarray(rows, object)
                    whole = exact.astype(dtype)
                    return whole if (whole == exact).all() else array
        return array
    except (NotImplementedError, OverflowError, TypeError, ValueError) as error:
        raise TypeError(
            f"numpy makes no array of it ({error}): its values must be numbers, its rows equally "
            "long"
        ) from None


def to_strings(value: Any) -> np.ndarray:
    """Returns an object array of `str` and `bytes`, which is how TensorFlow takes strings.

    As strings of numpy, bytes would lose NULs at their end.
    """
    array = np.asarray(value, None if isinstance(value, np.ndarray) else object)
    if array.dtype.kind in "SU" or not array.size:
        return array.astype(object)
    if array.dtype.kind != "O":
        raise TypeError(
            f"a cast from {array.dtype} to str changes what the values are: do it first"
        )
    for item in array.flat:
        if not isinstance(item, (str, bytes)):
            kind = "None" if item is None else f"a {type(item).__name__}"
            raise TypeError(f"only str and bytes are strings, there is {kind} among them")
    return array


def describe(value: Any) -> str:
    """Returns what a value is, for an error: "float64 [2, 3]", "a list of length 2"."""
    if value is None:
        return "None"
    if isinstance(value, (np.ndarray, np.generic)):
        return f"{value.dtype} {list(value.shape)}"
    if isinstance(value, (list, tuple, dict, str, bytes)):
        return f"a {type(value).__name__} of length {len(value)}"
    return f"a {type(value).__name__}"
