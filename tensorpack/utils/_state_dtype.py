"""Dtypes of plain values to JSON and back."""

from typing import Any

import numpy as np

__all__ = ["dtype_from_json", "dtype_to_json"]


def dtype_to_json(dtype: np.dtype) -> Any:
    """Returns a dtype as JSON, from which any version of numpy makes it again.

    Raises:
      TypeError: it has objects in it, or numpy does not know it by its name, or it has no bytes.
    """
    described = _described(dtype)
    try:
        if dtype_from_json(described) == dtype:
            return described
    except ValueError:
        pass
    raise TypeError(f"the dtype {dtype} is not made of plain numbers or text")


def dtype_from_json(described: Any) -> np.dtype:
    """Returns the dtype that `dtype_to_json` described.

    Raises:
      ValueError: it described none.
    """
    try:
        dtype = _named(described)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{described!r} is not a dtype") from error
    if dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"{described!r} is not a dtype of plain values")
    return dtype


def _described(dtype: Any) -> Any:
    if dtype.subdtype is not None:
        return {"base": _described(dtype.subdtype[0]), "shape": list(dtype.subdtype[1])}
    if dtype.names is None:
        return dtype.str
    fields = [dtype.fields[name] for name in dtype.names]
    return {
        "names": list(dtype.names),
        "formats": [_described(field[0]) for field in fields],
        "offsets": [int(field[1]) for field in fields],
        "itemsize": dtype.itemsize,
        "aligned": dtype.isalignedstruct,
    }


def _named(described: Any) -> np.dtype:
    if isinstance(described, str):
        return np.dtype(described)
    if "base" in described:
        return np.dtype((_named(described["base"]), tuple(described["shape"])))
    fields: Any = {key: described[key] for key in ("names", "offsets", "itemsize")}
    fields["formats"] = [_named(each) for each in described["formats"]]
    return np.dtype(fields, align=described["aligned"])
