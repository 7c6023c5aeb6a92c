"""Trees of plain values to JSON and a list of arrays, and back, exactly.

What JSON has no word for becomes an object with one key that begins with `$`. A dictionary of the
user that has such a key itself becomes a list of pairs.
"""

import base64
import math
import struct
from typing import Any, Callable, Dict, List, Sequence, Tuple

import numpy as np

from ._state_container import describe_array
from ._state_dtype import dtype_from_json, dtype_to_json

__all__ = ["MAX_DEPTH", "decode_tree", "encode_tree"]

MAX_DEPTH = 64

_MARK = "$"
_DOUBLE = struct.Struct(">d")
_JSON_INTEGER = 2**63  # Python refuses to write decimals of thousands of digits


def encode_tree(tree: Any) -> Tuple[Any, List[np.ndarray]]:
    """Returns a tree as JSON, and the arrays in it, which are not copied.

    Raises:
      TypeError: there is something else in it than `write_state` keeps; the text names the place.
    """
    encoder = _Encoder()
    return encoder.encode(tree, ()), encoder.arrays


def decode_tree(encoded: Any, arrays: Sequence[np.ndarray]) -> Any:
    """Returns the tree that `encode_tree` was given, with these arrays in it.

    Raises:
      ValueError: that is not what `encode_tree` returned.
    """
    try:
        return _Decoder(arrays).decode(encoded)
    except (LookupError, TypeError, ValueError, RecursionError, struct.error) as error:
        raise ValueError(f"it is not a tree of this program ({error})") from error


class _Encoder:
    def __init__(self) -> None:
        self.arrays: List[np.ndarray] = []
        # By the exact type: of a subclass another type would come back.
        self._by_type: Dict[type, Callable[[Any, Tuple[str, ...]], Any]] = {
            type(None): lambda value, path: value,
            bool: lambda value, path: value,
            int: lambda value, path: _encode_int(value),
            float: lambda value, path: _encode_float(value),
            str: lambda value, path: _encode_str(value),
            bytes: lambda value, path: {"$bytes": _to_text(value)},
            # str(value) would lose zeros at the end.
            np.str_: lambda value, path: {"$np.str": _encode_str(str.__str__(value))},
            np.bytes_: lambda value, path: {"$np.bytes": _to_text(bytes(value))},
            list: self._encode_items,
            tuple: lambda value, path: {"$tuple": self._encode_items(value, path)},
            dict: self._encode_dict,
        }

    def encode(self, value: Any, path: Tuple[str, ...]) -> Any:
        if len(path) > MAX_DEPTH:
            raise TypeError(
                f"The state is nested deeper than {MAX_DEPTH} levels, or contains itself, at "
                f"{_name(path)}."
            )
        encode = self._by_type.get(type(value))
        if encode is not None:
            return encode(value, path)
        try:
            if isinstance(value, np.ndarray):
                return self._encode_array(value)
            if isinstance(value, np.generic):
                return _encode_scalar(value)
        except TypeError as error:
            raise TypeError(f"Cannot keep {_name(path)} in a state: {error}.") from error
        raise TypeError(
            f"Cannot keep {_name(path)} in a state: a {type(value).__name__} is not a number, "
            "text, bytes, a numpy array, list, tuple or dict. Turn it into these."
        )

    def _encode_items(self, items: Sequence[Any], path: Tuple[str, ...]) -> List[Any]:
        return [self.encode(item, path + (str(i),)) for i, item in enumerate(items)]

    def _encode_dict(self, value: Dict[str, Any], path: Tuple[str, ...]) -> Dict[str, Any]:
        for key in value:
            if type(key) is not str:
                raise TypeError(
                    f"Cannot keep {_name(path)} in a state: it has the key {key!r} of type "
                    f"{type(key).__name__}. Make it a str."
                )
        pairs = [
            (_encode_str(key), self.encode(item, path + (key,))) for key, item in value.items()
        ]
        if all(type(key) is str and not key.startswith(_MARK) for key, _ in pairs):
            return dict(pairs)
        return {"$dict": pairs}

    def _encode_array(self, array: np.ndarray) -> Dict[str, int]:
        describe_array(array)
        self.arrays.append(array)
        return {"$array": len(self.arrays) - 1}


class _Decoder:
    def __init__(self, arrays: Sequence[np.ndarray]) -> None:
        self._arrays = arrays
        self._by_mark: Dict[str, Callable[[Any], Any]] = {
            "$array": lambda index: self._arrays[index],
            "$bytes": _from_text,
            "$dict": lambda pairs: {self.decode(key): self.decode(item) for key, item in pairs},
            "$float": lambda text: _DOUBLE.unpack(bytes.fromhex(text))[0],
            "$int": lambda text: int(text, 16),
            "$np.bytes": lambda text: np.bytes_(_from_text(text)),
            "$np.str": lambda text: np.str_(self.decode(text)),
            "$scalar": _decode_scalar,
            "$str": lambda text: _from_text(text).decode("utf-8", "surrogatepass"),
            "$tuple": lambda items: tuple(self.decode(item) for item in items),
        }

    def decode(self, value: Any) -> Any:
        if type(value) is list:
            return [self.decode(item) for item in value]
        if type(value) is not dict:
            return value
        if len(value) == 1:
            ((key, item),) = value.items()
            if key.startswith(_MARK):
                return self._by_mark[key](item)
        return {key: self.decode(item) for key, item in value.items()}


def _name(path: Tuple[str, ...]) -> str:
    return repr("/".join(path)) if path else "the whole"


def _encode_int(value: int) -> Any:
    return value if -_JSON_INTEGER <= value < _JSON_INTEGER else {"$int": format(value, "x")}


def _encode_float(value: float) -> Any:
    return value if math.isfinite(value) else {"$float": _DOUBLE.pack(value).hex()}


def _encode_str(value: str) -> Any:
    try:
        value.encode("utf-8")
        return value
    except UnicodeEncodeError:  # JSON makes one character of two surrogates
        return {"$str": _to_text(value.encode("utf-8", "surrogatepass"))}


def _encode_scalar(value: np.generic) -> Dict[str, Any]:
    array = np.asarray(value)
    return {"$scalar": [dtype_to_json(array.dtype), _to_text(array.tobytes())]}


def _decode_scalar(item: Any) -> np.generic:
    described, text = item
    return np.frombuffer(_from_text(text), dtype_from_json(described), 1).copy()[0]


def _to_text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _from_text(text: str) -> bytes:
    return base64.b64decode(text, validate=True)
