"""Stacks the components of datapoints into new arrays, or explains why they do not fit.

A batch holds exactly the values of its datapoints, but for Python's floats, which become float32
unless there are wider ones: nothing is truncated, cast to another kind, or wrapped around.
"""

import itertools
from contextlib import suppress
from typing import Any, Dict, Hashable, Iterator, List, Sequence

import numpy as np

from tensorpack.utils.workers.processes import keep_freed_memory

from ._flow import form_of

_MOST_SHAPES = 3  # that an error names
_LARGE = 1 << 14  # bytes of an array that is copied into its batch at once
_NUMBERS = (bool, int, float)  # in this order: a bool is an int as well


class DeferredStack:
    """An array whose rows are separate until they are written; it is read as one array.

    There is at least one row. All have the same shape, and are converted to `dtype`.
    """

    def __init__(self, arrays: Sequence[np.ndarray], dtype: np.dtype) -> None:
        self.arrays = list(arrays)
        self.dtype = np.dtype(dtype)
        self.shape = (len(self.arrays), *self.arrays[0].shape)
        self.nbytes = self.dtype.itemsize * len(self.arrays) * self.arrays[0].size

    def fill(self, array: np.ndarray) -> None:
        """Writes the rows into an array of this shape and dtype."""
        for row, part in enumerate(self.arrays):
            array[row] = part

    def array(self) -> np.ndarray:
        """The rows as a new array in C order."""
        array: np.ndarray = np.empty(self.shape, self.dtype)
        self.fill(array)
        return array


class Group(list):
    """Datapoints of a batch whose large arrays are in the batch already.

    `arrays` are those of the batch, by index of the component. Their rows are in the datapoints.
    """

    arrays: Dict[Hashable, np.ndarray]


def gather(datapoints: Iterator[Any], size: int) -> Group:
    """Returns the next datapoints, fewer than `size` at the end only.

    Large arrays are copied into the batch one by one, while a processor's cache has them.
    """
    group = Group(itertools.islice(datapoints, 1))
    rest = itertools.islice(datapoints, size - 1)
    group.arrays = {}
    with suppress(MemoryError, ValueError):  # a size for all of a pass, which is far smaller
        for index, part in (_parts_of(group[0]) if group else {}).items():
            if type(part) is np.ndarray and part.nbytes >= _LARGE and part.dtype.kind != "O":
                group.arrays[index] = np.empty((size, *part.shape), part.dtype)
    if not group.arrays:
        group.extend(rest)
        return group
    for row, datapoint in enumerate(itertools.chain([group.pop()], rest)):
        parts = _parts_of(datapoint)
        for index, array in group.arrays.items():
            part, place = parts.get(index), array[row]
            if type(part) is np.ndarray and part.shape == place.shape and part.dtype == place.dtype:
                place[...] = part
                parts[index] = place
        whole = parts if isinstance(datapoint, dict) else list(parts.values())
        group.append(whole if parts else datapoint)
    return group


def _parts_of(datapoint: Any) -> Dict[Hashable, Any]:
    if isinstance(datapoint, (list, tuple)):
        return dict(enumerate(datapoint))
    return dict(datapoint) if isinstance(datapoint, dict) else {}


def aggregate(datapoints: Sequence[Any], use_list: bool = False, deferred: bool = False) -> Any:
    """Makes one datapoint whose components stack those of `datapoints`; see `BatchData`.

    With `deferred`, arrays are stacked where they are written: a `DeferredStack` is in their place.
    """
    if not datapoints:
        raise ValueError("A batch needs at least one datapoint.")
    keep_freed_memory()
    first = datapoints[0]
    check_form(datapoints)
    indices = list(first) if isinstance(first, dict) else range(len(first))
    arrays = getattr(datapoints, "arrays", {})  # of a `Group`
    components: List[Any] = []
    for index in indices:
        values = [datapoint[index] for datapoint in datapoints]
        array = arrays.get(index, ())
        if len(array) == len(values) and all(getattr(v, "base", None) is array for v in values):
            components.append(array)
        else:
            components.append(values if use_list else _stack(values, index, deferred))
    return dict(zip(indices, components)) if isinstance(first, dict) else components


def check_form(datapoints: Sequence[Any]) -> None:
    """Raises unless all datapoints are dicts of the same keys, or lists of the same length."""
    first = datapoints[0]
    for datapoint in datapoints:
        if not isinstance(datapoint, (list, tuple, dict)):
            raise TypeError(
                "A datapoint is a list, tuple or dict of components, but got "
                f"{type(datapoint).__name__}. For a single component, yield [component]."
            )
        is_dict = isinstance(datapoint, dict)
        alike = is_dict == isinstance(first, dict) and len(datapoint) == len(first)
        if not alike or (is_dict and datapoint.keys() != first.keys()):
            raise ValueError(
                "The datapoints of a batch differ in form: "
                f"{form_of(first)} and {form_of(datapoint)}."
            )


def _stack(values: List[Any], index: Hashable, deferred: bool) -> Any:
    types = {type(value) for value in values}
    if types <= set(_NUMBERS):
        return _stack_numbers(values, types, index)
    if types <= {str, np.str_} or types <= {bytes, np.bytes_}:
        return _stack_strings(values, index)
    if types & {str, bytes} or types >= {np.str_, np.bytes_}:
        mixed = " and ".join(sorted(kind.__name__ for kind in types))
        raise TypeError(
            f"Component {index!r} of a batch mixes {mixed}. "
            "With str there can be only str, and with bytes only bytes: convert them by "
            "MapDataComponent, or use use_list=True."
        )
    if float in types:
        numpy_values = (value for value in values if isinstance(value, (np.ndarray, np.generic)))
        if any(value.dtype.char in "dg" for value in numpy_values):  # float64 and above are exact
            values = [np.float64(v) if type(v) is float else v for v in values]
    arrays = [as_array(value, index) for value in values]
    shapes = {array.shape for array in arrays}
    if len(shapes) > 1:
        some = ", ".join(map(str, sorted(shapes)[:_MOST_SHAPES]))
        raise ValueError(
            f"Component {index!r} of a batch of {len(arrays)} has different shapes, such as "
            f"{some}: equalise them (images by resize= or imgaug.Resize), pad them, or "
            "use use_list=True."
        )
    stack = DeferredStack(arrays, _common_dtype(arrays, index))
    return stack if deferred and not (stack.dtype.names or stack.dtype.hasobject) else stack.array()


def _stack_numbers(values: List[Any], types: set, index: Hashable) -> np.ndarray:
    if types == {bool}:
        return np.array(values, np.bool_)
    if float not in types:
        limits = np.iinfo(np.int32)
        if min(values) < limits.min or max(values) > limits.max:
            raise ValueError(
                f"Component {index!r} has integers from {min(values)} to {max(values)}. Python "
                "integers are batched as int32: yield np.int64(value) to keep larger ones."
            )
        return np.array(values, np.int32)
    with np.errstate(over="ignore"):
        stacked = np.array(values, np.float32)
    if np.any(np.isinf(stacked) & np.isfinite(np.array(values, np.float64))):
        raise ValueError(
            f"Component {index!r} has numbers that are too large for float32. Python floats are "
            "batched as float32: yield np.float64(value) to keep larger ones."
        )
    return stacked


def _stack_strings(values: List[Any], index: Hashable) -> np.ndarray:
    zero = "\0" if isinstance(values[0], str) else b"\0"
    if any(value.endswith(zero) for value in values):
        raise ValueError(
            f"Component {index!r} has strings that end with a zero byte, which numpy's strings "
            "would lose. Use use_list=True, or yield np.frombuffer(value, np.uint8)."
        )
    # numpy 1.18 makes too much room for bytes of its own.
    return np.array([v.item() if isinstance(v, np.generic) else v for v in values])


def as_array(value: Any, index: Hashable) -> np.ndarray:
    if isinstance(value, np.ndarray) and value.dtype.kind != "O" and not np.ma.isMA(value):
        return value
    if isinstance(value, np.generic):
        return np.asarray(value)
    for number in _NUMBERS:
        if isinstance(value, number):
            return _stack_numbers([value], {number}, index)[0]
    kind = "an array of objects" if type(value) is np.ndarray else type(value).__name__
    raise TypeError(
        f"Component {index!r} is {kind}, which cannot be batched into an array. Yield numpy "
        "arrays or scalars, bool, int, float, str or bytes, or use use_list=True."
    )


def _common_dtype(arrays: Sequence[np.ndarray], index: Hashable) -> np.dtype:
    dtypes = {array.dtype for array in arrays}
    if len(dtypes) == 1:
        return arrays[0].dtype
    # Signed and unsigned integers count as one kind, for every common dtype but one holds both.
    kinds = {dtype.kind.replace("u", "i") for dtype in dtypes}
    # Times of a finer unit would wrap around, and of records each field be promoted.
    common = np.result_type(*dtypes) if len(kinds) == 1 and kinds <= set("bifcSU") else None
    if common is None or common.kind not in "".join(dtype.kind for dtype in dtypes):
        names = ", ".join(sorted(map(str, dtypes)))
        raise ValueError(
            f"Component {index!r} of a batch has dtypes of different kinds: {names}. Convert them "
            "to one by MapDataComponent."
        )
    return common
