"""Remembers how datapoints are packed and unpacked, for those of one flow are much alike.

Most datapoints are a few large arrays of always the same shapes, and perhaps a number. What
`utils.packed` writes about such a datapoint is the same each time, so it need not be worked out
again, at either end. Whatever is more than that goes the long way.
"""

from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from tensorpack.utils.packed import MAX_INLINE_BYTES, Packed, pack, unpack

__all__ = ["Packing", "Unpacking"]

_MOST = 1000  # layouts that are remembered
_MOST_BYTES = 1 << 10  # of one of them
_MOST_CHARACTERS = 100
_PLAIN = (type(None), bool, int)
_TEXT = (str, bytes)
_CONSTANT = (*_PLAIN, *_TEXT, float)


class _Memory:
    """A dictionary that gives up if there is no use in it."""

    def __init__(self) -> None:
        self.known: Dict[Any, Any] = {}
        self.is_of_use = True
        self._missed = self._uses = 0

    def get(self, key: Any) -> Any:
        found = self.known.get(key)
        if found is None:
            self._missed += 1
        else:
            self._uses += 1
        return found

    def put(self, key: Any, value: Any) -> None:
        if len(self.known) >= _MOST:
            self.known.clear()
            self.is_of_use = self._uses > self._missed
        self.known[key] = value


class Packing:
    """Packs objects as `pack` does."""

    def __init__(self) -> None:
        self._memory = _Memory()

    def __call__(self, obj: Any) -> Packed:
        """Packs an object.

        Raises:
          TypeError, ValueError: as `pack` does.
        """
        arrays: List[Any] = []
        key = self._key(obj, arrays) if self._memory.is_of_use else None
        if key is None:
            return pack(obj)
        known = self._memory.get(key)
        if known is None:
            packed = pack(obj)
            if len(packed.structure) <= _MOST_BYTES:
                self._memory.put(key, (packed.structure, packed.nbytes))
            return packed
        return Packed(known[0], arrays, known[1])

    @staticmethod
    def _key(obj: Any, arrays: List[Any]) -> Any:
        """What says all about an object but the elements of its arrays, which are added to a list;
        None if there is no such thing.
        """
        kind = type(obj)
        key: List[Any] = [kind]
        if kind is dict:
            key += obj
            if not all(type(each) is str for each in key[1:]):
                return None
            obj = obj.values()
        elif kind is not list and kind is not tuple:
            return None
        for part in obj:
            kind = type(part)
            if kind is np.ndarray and part.nbytes > MAX_INLINE_BYTES:
                arrays.append(part)
                key += (part.dtype, part.shape)
            elif kind in _PLAIN or kind in _TEXT and len(part) <= _MOST_CHARACTERS:
                key += (kind, part)  # a float would be equal to others that are written otherwise
            else:
                return None
        return tuple(key)


class Unpacking:
    """Unpacks objects as `unpack` does."""

    def __init__(self) -> None:
        self._memory = _Memory()

    def __call__(
        self,
        memory: np.ndarray,
        structure_nbytes: int,
        start: int,
        end: int,
        keep: Optional[Callable[[np.ndarray], np.ndarray]],
    ) -> Any:
        """Unpacks an object; the arguments are those of `unpack`."""
        if not self._memory.is_of_use or structure_nbytes > _MOST_BYTES:
            return unpack(memory, structure_nbytes, start, end, keep)
        structure = memory[start : start + structure_nbytes].tobytes()
        layout = self._memory.get(structure)
        if layout is not None:
            return layout.build(memory, start, keep)
        arrays: List[np.ndarray] = []

        def note(array: np.ndarray) -> np.ndarray:
            if array.base is memory:  # or it is a part of the structure
                arrays.append(array)
            return array if keep is None else keep(array)

        obj = unpack(memory, structure_nbytes, start, end, note)
        layout = _layout_of(obj, arrays, memory.ctypes.data + start)
        if layout is not None:
            self._memory.put(structure, layout)
        return obj


class _Layout:
    """How an object is put together.

    Args:
      keys: if it is a dict.
      is_tuple: whether it is a tuple.
      parts: what is the same each time, None in place of arrays.
      holes: where arrays come in: the index, shape, dtype, and position behind the begin.
    """

    def __init__(
        self,
        keys: Optional[List[Any]],
        is_tuple: bool,
        parts: List[Any],
        holes: List[Tuple[int, Tuple[int, ...], np.dtype, int]],
    ) -> None:
        self._keys, self._is_tuple, self._parts, self._holes = keys, is_tuple, parts, holes

    def build(
        self,
        memory: np.ndarray,
        start: int,
        keep: Optional[Callable[[np.ndarray], np.ndarray]],
    ) -> Any:
        """Puts an object together that begins at `start` of a memory."""
        parts: Any = self._parts.copy()
        for index, shape, dtype, position in self._holes:
            array: np.ndarray = np.ndarray(shape, dtype, memory, start + position)
            parts[index] = array if keep is None else keep(array)
        if self._keys is not None:
            return dict(zip(self._keys, parts))
        return tuple(parts) if self._is_tuple else parts


def _layout_of(obj: Any, arrays: List[np.ndarray], begin: int) -> Optional[_Layout]:
    """How an object that was unpacked was put together; None if it is not as simple as that.

    Args:
      obj: the object.
      arrays: those in it that are views of the memory, in order.
      begin: the address where it begins.
    """
    kind = type(obj)
    if kind not in (dict, list, tuple):
        return None
    parts = list(obj.values() if kind is dict else obj)
    places = [index for index, part in enumerate(parts) if type(part) is np.ndarray]
    if len(places) != len(arrays):  # some are a part of the structure, or not at the top
        return None
    holes = []
    for index, array in zip(places, arrays):
        holes.append((index, array.shape, array.dtype, array.ctypes.data - begin))
        parts[index] = None
    if not all(type(part) in _CONSTANT or isinstance(part, np.generic) for part in parts):
        return None
    return _Layout(list(obj) if kind is dict else None, kind is tuple, parts, holes)
