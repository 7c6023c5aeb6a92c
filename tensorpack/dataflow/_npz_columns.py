"""How one component of all datapoints becomes plain arrays, and those become components again.

Values come back with the same type and bits: a Python integer does not become a numpy integer.
The kinds of columns:

=======================  =======================================================================
`array`                  numpy arrays of one dtype and shape, stacked: numbers, booleans, text
`scalar`                 numpy scalars of one dtype: numbers, booleans
`int`, `float`, `bool`   Python's, as int64, float64 and bool
`frames`                 anything else that `tensorpack.utils.serialize` encodes, one after
                         another in `frames`, the beginnings and the end of each in `offsets`
=======================  =======================================================================
"""

from typing import Any, Callable, Dict, List, NamedTuple, Sequence

import numpy as np

from tensorpack.utils.serialize import dumps, loads

_PYTHON = {"int": np.dtype(np.int64), "float": np.dtype(np.float64), "bool": np.dtype(np.bool_)}
_ARRAYS = "biufcSU"  # kinds of dtypes; frames refuse the others, and say where they are
_SCALARS = "biufc"  # numpy's strings would lose zero bytes at their end
_OFFSETS = np.dtype(np.int64)


class Column(NamedTuple):
    """One component of all datapoints: its kind and its arrays, by name."""

    kind: str
    parts: Dict[str, np.ndarray]


def parts_of_kind(kind: Any) -> Sequence[str]:
    """Returns the names of the arrays of a kind of column; raises ValueError for other kinds."""
    if kind == "frames":
        return ("frames", "offsets")
    if kind in ("array", "scalar") or kind in tuple(_PYTHON):
        return ("values",)
    raise ValueError(f"unknown kind of column {kind!r}")


def column_of(values: Sequence[Any]) -> Column:
    """Makes a column of the values of one component, at least one.

    A TypeError or ValueError names the index of a value that cannot be encoded.
    """
    kind = _kind_of(values)
    if kind == "frames":
        return _frames_of(values)
    if kind in _PYTHON:
        return Column(kind, {"values": np.array(values, _PYTHON[kind])})
    # Not by `np.stack`, which does not keep the byte order of a dtype.
    stacked = np.empty((len(values),) + values[0].shape, values[0].dtype)
    for row, value in enumerate(values):
        stacked[row] = value
    return Column(kind, {"values": stacked})


def _kind_of(values: Sequence[Any]) -> str:
    types = {type(value) for value in values}
    if len(types) > 1:
        return "frames"
    (kind,) = types
    if kind is int:
        limits = np.iinfo(np.int64)
        fits = limits.min <= min(values) and max(values) <= limits.max
        return "int" if fits else "frames"
    if kind in (float, bool):
        return kind.__name__
    is_array = kind is np.ndarray
    if not is_array and not issubclass(kind, np.generic):
        return "frames"
    dtype = values[0].dtype
    if len({(value.dtype, value.shape) for value in values}) > 1:
        return "frames"
    if dtype.itemsize == 0 or dtype.kind not in (_ARRAYS if is_array else _SCALARS):
        return "frames"
    return "array" if is_array else "scalar"


def _frames_of(values: Sequence[Any]) -> Column:
    frames = []
    for index, value in enumerate(values):
        try:
            frames.append(dumps([value]))
        except TypeError as error:
            raise TypeError(f"datapoint {index}: {error}") from error
        except (ValueError, OverflowError) as error:
            raise ValueError(f"datapoint {index}: {error}") from error
    offsets = np.zeros(len(frames) + 1, _OFFSETS)
    np.cumsum([len(frame) for frame in frames], out=offsets[1:])
    return Column(
        "frames", {"frames": np.frombuffer(b"".join(frames), np.uint8), "offsets": offsets}
    )


def reader_of(column: Column, length: int) -> Callable[[int], Any]:
    """Returns a function from index to component; raises ValueError if the column is damaged."""
    if column.kind == "frames":
        return _frame_reader(column.parts["frames"], column.parts["offsets"], length)
    values = column.parts["values"]
    if values.ndim == 0 or len(values) != length:
        raise ValueError(f"values of shape {values.shape} for {length} datapoints")
    if column.kind == "array":
        return lambda index: values[index, ...]  # the dots keep a value without axes an array
    if values.ndim != 1:
        raise ValueError(f"values of shape {values.shape} in a column of scalars")
    if column.kind == "scalar":
        return values.__getitem__
    if values.dtype != _PYTHON[column.kind]:
        raise ValueError(f"values of {values.dtype} in a column of {column.kind}")
    return values.item


def _frame_reader(frames: np.ndarray, offsets: np.ndarray, length: int) -> Callable[[int], Any]:
    if frames.dtype != np.uint8 or frames.ndim != 1:
        raise ValueError(f"frames of {frames.dtype} {frames.shape}")
    if offsets.dtype != _OFFSETS or offsets.shape != (length + 1,):
        raise ValueError(f"offsets of {offsets.dtype} {offsets.shape} for {length} datapoints")
    ends: List[int] = offsets.tolist()
    if ends[0] != 0 or ends[-1] != len(frames) or ends != sorted(ends):
        raise ValueError("offsets that do not fit to the frames")

    def read(index: int) -> Any:
        values = loads(frames[ends[index] : ends[index + 1]].tobytes())
        if not isinstance(values, list) or len(values) != 1:
            raise ValueError(f"a frame of {type(values).__name__}, not of a list with one value")
        return values[0]

    return read
