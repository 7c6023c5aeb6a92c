"""Packs flat objects of a form that was seen before as their scalars and arrays alone.

Most datapoints of a flow have one form: the same types, dtypes and shapes, while the values change.
The two ends of a channel number such forms. The first object of a form travels in the format of
`packed.py`; from then on its structure holds nothing but the scalars, each of fixed width.
"""

import functools
import operator
import struct
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

import numpy as np

from .packed import MAX_INLINE_BYTES, Keep, Packed, aligned, pack, unpack

_MOST_LAYOUTS = 255
_MOST_FORMS = 1000  # until a writer asks itself whether any of them come again
_MOST_TEXT = 100
_NUMBERS = "biufc"  # kinds of dtypes; others need checks that are made in `packed.py`


def _form_of(obj: Any) -> Any:
    """Returns what all objects of one layout have in common; None if there is no layout for it."""
    kind = type(obj)
    form: List[Any] = [kind]
    if kind is dict:
        form += obj
        if not all(type(key) is str for key in obj):
            return None
        obj = obj.values()
    elif kind is not list and kind is not tuple:
        return None
    for part in obj:
        kind = type(part)
        if kind is int or kind is float:
            form.append(kind)
        elif kind is np.ndarray or isinstance(part, np.generic):
            if part.dtype.kind not in _NUMBERS:
                return None
            form += (kind, part.dtype, part.shape)
        elif part is None or kind is bool:
            form.append(part)
        elif kind is bytes or kind is str and part.isascii():
            if len(part) > _MOST_TEXT:
                return None
            form += (kind, len(part))
        else:
            return None
    return tuple(form)


class _Scalar(NamedTuple):
    """A part of an object that is written into the structure."""

    place: int
    code: str
    write: Optional[Callable[[Any], Any]] = None
    read: Optional[Callable[[Any], Any]] = None


class _Layout:
    """How objects of one form, such as `obj`, are written and read."""

    def __init__(self, obj: Any) -> None:
        self._keys = list(obj) if type(obj) is dict else None
        self._is_tuple = type(obj) is tuple
        self._parts = list(obj.values()) if self._keys is not None else list(obj)
        self._scalars: List[_Scalar] = []
        self._holes: List[Tuple[int, Tuple[int, ...], np.dtype, int]] = []
        nbytes = 0
        for index, part in enumerate(self._parts):
            if part is None or type(part) is bool:
                continue
            if type(part) is np.ndarray and part.nbytes > MAX_INLINE_BYTES:
                self._holes.append((index, part.shape, part.dtype, nbytes))
                nbytes += aligned(part.nbytes)
            else:
                self._scalars.append(_scalar(index, part))
            self._parts[index] = None
        self._struct = struct.Struct(">x" + "".join(each.code for each in self._scalars))
        self._area = aligned(self._struct.size)
        self._nbytes = self._area + nbytes

    def pack(self, obj: Any) -> Packed:
        """Packs an object of this form; raises struct.error if an integer is too large."""
        parts = obj if self._keys is None else list(obj.values())
        values = []
        for index, _, write, _ in self._scalars:
            values.append(parts[index] if write is None else write(parts[index]))
        arrays = [parts[index] for index, _, _, _ in self._holes]
        return Packed(self._struct.pack(*values), arrays, self._nbytes)

    def unpack(self, memory: np.ndarray, start: int, keep: Keep) -> Any:
        """Puts an object together that begins at `start` of a memory."""
        parts: Any = self._parts.copy()
        values = self._struct.unpack_from(memory, start)  # type: ignore[arg-type]
        for (index, _, _, read), value in zip(self._scalars, values):
            parts[index] = value if read is None else read(value)
        for index, shape, dtype, position in self._holes:
            array: np.ndarray = np.ndarray(shape, dtype, memory, start + self._area + position)
            parts[index] = array if keep is None else keep(array)
        if self._keys is not None:
            return dict(zip(self._keys, parts))
        return tuple(parts) if self._is_tuple else parts


def _scalar(index: int, part: Any) -> _Scalar:
    kind = type(part)
    if kind is int or kind is float:
        return _Scalar(index, "q" if kind is int else "d")
    if kind is str:
        return _Scalar(index, f"{len(part)}s", str.encode, bytes.decode)
    if kind is bytes:
        return _Scalar(index, f"{len(part)}s")
    read: Any = functools.partial(np.ndarray, part.shape, part.dtype)  # type: ignore[arg-type]
    if kind is not np.ndarray:
        read = functools.partial(_item, part.dtype)
    return _Scalar(index, f"{part.nbytes}s", operator.methodcaller("tobytes"), read)


def _item(dtype: np.dtype, data: bytes) -> Any:
    return np.frombuffer(data, dtype)[0]


class LayoutWriter:
    """Packs the objects of one end of a channel.

    The other end learns the layout number `unsent`, unless it is 0, from the object that was packed
    last. Call `was_sent` when that object has been sent.
    """

    def __init__(self) -> None:
        self.unsent = 0
        self._form: Any = None  # of `unsent`
        self._layouts: Dict[Any, Tuple[int, _Layout]] = {}
        self._sent: Dict[Any, Tuple[int, _Layout]] = {}
        self._forms: Set[Any] = set()  # seen once
        self._uses = self._misses = 0
        self._is_useful = True

    def pack(self, obj: Any) -> Tuple[Packed, int]:
        """Packs an object; returns it and the number of its layout, or 0."""
        self.unsent = 0
        form = _form_of(obj) if self._is_useful else None
        known = self._sent.get(form)
        if known is not None:
            self._uses += 1
            try:
                return known[1].pack(obj), known[0]
            except struct.error:  # an integer of more than 63 bits
                return pack(obj, pickles=True), 0
        packed = pack(obj, pickles=True)
        if form is not None:
            self.unsent, self._form = self._number_for(form, obj), form
        return packed, self.unsent

    def was_sent(self) -> None:
        """Tells that the other end has learned the layout `unsent`."""
        self._sent[self._form] = self._layouts[self._form]

    def _number_for(self, form: Any, obj: Any) -> int:
        """Returns the number of a form that comes for the second time, or 0."""
        if form in self._layouts:
            return self._layouts[form][0]
        self._misses += 1
        if len(self._forms) >= _MOST_FORMS:
            self._forms.clear()
            self._is_useful = self._uses > self._misses
        if form not in self._forms or len(self._layouts) >= _MOST_LAYOUTS:
            self._forms.add(form)
            return 0
        self._layouts[form] = len(self._layouts) + 1, _Layout(obj)
        return len(self._layouts)


class LayoutReader:
    """Unpacks the objects of the other end."""

    def __init__(self) -> None:
        self._layouts: Dict[int, _Layout] = {}

    def unpack(
        self,
        memory: np.ndarray,
        structure_nbytes: int,
        start: int,
        end: int,
        keep: Keep,
        number: int,
    ) -> Any:
        """Unpacks an object; the arguments are those of `unpack`, and the number of its layout."""
        layout = self._layouts.get(number)
        if layout is not None:
            return layout.unpack(memory, start, keep)
        obj = unpack(memory, structure_nbytes, start, end, keep, pickles=True)
        if number:
            self._layouts[number] = _Layout(obj)
        return obj
