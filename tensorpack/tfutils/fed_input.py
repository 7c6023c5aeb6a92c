"""Makes arrays that can be fed of what is given for one input, without changing its values.

TensorFlow itself makes NaN of None, and 0 of 0.9 where the input has integers. The datapoints of a
trainer (`input_source`) and what predictors are called with (`prepared`) are checked by this rule.
"""

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

        float64 becomes float32, int64 becomes int32 and the like, where all values fit, and the log
        says so once; bool and integers are widened as numpy's safe casts do. NaN passes. Floats
        become integers if each is a whole number, such as labels made by `np.zeros(n)`.

        Raises:
          TypeError: it is None, holds objects, or would change its kind (0.5 to int, str to
            number).
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
        array = to_strings(value) if self._is_string else _to_numbers(value)
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

    Numbers may change to a wider dtype of any kind (bool to int, int to float), to a narrower one
    of the same kind, integers to a float that holds all of them exactly, and whole numbers to
    integers. NaN and infinity stay what they are, or are refused. Raises as `FedInput.feed` does.
    """
    if array.dtype == dtype:
        return array
    source, target = kind_of(array.dtype), kind_of(dtype)
    if np.can_cast(array.dtype, dtype, "safe"):
        return array.astype(dtype)
    if source == "integer" and (target == "integer" or dtype.kind == "f"):  # not bfloat16
        return _narrow_integers(array, dtype)
    if source == target != "other":
        return _narrow_floats(array, dtype)
    if array.dtype.kind == "f" and target == "integer":
        if np.all(np.isfinite(array) & (array == np.rint(array))):
            return _narrow_integers(array, dtype)
    raise TypeError(
        f"a cast from {array.dtype} to {dtype} changes what the values are: do it first"
    )


def kind_of(dtype: np.dtype) -> str:
    """Returns whether a dtype is "bool", "integer", "floating", "complex" or "other"."""
    # NumPy itself has no bfloat16, and does not know that it is one of floating point
    return _KINDS.get(dtype.kind) or ("floating" if "float" in dtype.name else "other")


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
        raise TypeError("masked values are not data: fill them first")
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


def to_strings(value: Any) -> np.ndarray:
    """Returns an object array of `str` and `bytes`, which is how TensorFlow takes strings.

    As strings of numpy, bytes would lose NULs at their end.
    """
    array = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)
    if array.dtype.kind in "SU":
        return array.astype(object)
    if array.dtype.kind != "O":
        raise TypeError(
            f"a cast from {array.dtype} to str changes what the values are: do it first"
        )
    for each in array.flat:
        if not isinstance(each, (str, bytes)):
            kind = "None" if each is None else f"a {type(each).__name__}"
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
