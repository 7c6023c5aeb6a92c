"""Decodes what old tensorpack and old numpy wrote, by msgpack or by pickle.

The bytes have neither version nor checksum, so damage is found only where it breaks their
structure. Only containers, numbers, text, bytes and numpy arrays come out of them, and no code
runs: `pickletools` takes a pickle apart, and the few opcodes and functions that make plain values
are carried out here. Time and memory are bounded by a multiple of the bytes.
"""

import collections
import importlib
import io
import pickle
import types
from typing import Any, Dict, List, Tuple

import numpy as np

from ..optional import msgpack_codec, require
from .packed_arrays import MAX_DIMENSIONS, check_text, dtype_of, nbytes_of

_MOST = 64  # containers in containers, and elements of a key, whose hash is taken each time
# A pickle can name one value again and again. For each of its bytes,
_MAX_COPIES = 16  # bytes of arrays that are made of it, and
_MAX_SHARED = 256  # objects in what it yields, as many times as they are in there
_MAX_EMPTY = 1 << 24  # along one axis of an array without elements; numpy of 2018 asks for memory


class BadRecord(Exception):
    """Bytes are damaged. The caller, who knows where they are from, raises an error about it."""


class RefusedRecord(Exception):
    """Bytes may be whole but are not decoded; the caller raises `ValueError`, and skips none."""


def kind_of_old(value: bytes) -> str:
    """Returns "pickle" (of protocol 2 to 5) or "msgpack" if the bytes begin so, or else ""."""
    if len(value) > 2 and value[0] == 0x80 and 2 <= value[1] <= 5:
        return "pickle"
    is_container = value[:1] and (0x80 <= value[0] < 0xA0 or 0xDC <= value[0] < 0xE0)
    return "msgpack" if is_container else ""


def decode_old(value: bytes, trusted: bool = False) -> Any:
    """Returns the object in bytes that are a pickle, or else msgpack of tensorpack of 2017.

    That can be lists, tuples, dicts, sets, numbers, text, bytes, and numpy's arrays and scalars,
    also arrays of objects. Bytes of Python 2 become text, of which no character is lost. Anything
    else that a pickle names is an error and is not even imported, unless it is `trusted`: then
    Python unpickles it, which can run any code.
    """
    is_pickle = kind_of_old(value) == "pickle"
    if not is_pickle:
        require("msgpack")
    try:
        try:
            return _unpickled(value) if is_pickle else _unpacked(value)
        except RefusedRecord:
            if not (trusted and is_pickle):
                raise
            return pickle.loads(value, encoding="latin1")
    except (BadRecord, RefusedRecord):
        raise
    except Exception as error:  # damaged bytes can make it fail in almost every way
        raise BadRecord(
            f"It is damaged, or not of tensorpack: {error!s:.99} ({type(error).__name__})"
        ) from error


def _unpacked(value: bytes) -> Any:
    return msgpack_codec().unpackb(
        value, object_hook=_restore, ext_hook=_no_extension, raw=False, strict_map_key=False
    )


def _restore(found: Dict[Any, Any]) -> Any:
    """Returns the array, scalar or complex number that msgpack_numpy wrote as a dict."""
    data: Any = found.get(b"data")
    if b"data" in found and b"nd" in found and b"type" in found:
        if found.get(b"kind") in (b"O", "O"):
            return _unpickled(_checked(data, bytes))
        shape = found.get(b"shape") if found[b"nd"] else ()
        array = array_of(data, _plain_dtype(found[b"type"]), shape)
        return array if found[b"nd"] else array[()]
    if b"data" in found and found.get(b"complex") is True:
        return complex(data.decode("ascii") if isinstance(data, bytes) else data)
    return found


def _no_extension(code: int, data: bytes) -> Any:
    raise BadRecord(f"It has a msgpack extension {code}, which tensorpack did not write.")


def _plain_dtype(name: Any) -> np.dtype:
    name = name.decode("latin1") if isinstance(name, bytes) else name
    try:
        return dtype_of(name)
    except ValueError as error:
        raise RefusedRecord(
            f"It has an array of dtype {name!r:.80}, and not of plain numbers, text or objects: "
            "write the file again where it can be read."
        ) from error


def array_of(data: Any, dtype: Any, shape: Any, order: Any = "C") -> np.ndarray:
    """Returns a new array; `order` is that of its bytes, or its list of objects: "C" or "F"."""
    sizes: Any = tuple(_checked(shape, list, tuple))
    if len(sizes) > MAX_DIMENSIONS or not all(type(n) is int and 0 <= n < 1 << 63 for n in sizes):
        raise BadRecord("It has an array of a wrong shape.")
    if _checked(dtype, np.dtype).hasobject:
        flat = np.empty(len(_checked(data, list)), object)
        for index, each in enumerate(data):
            flat[index] = each
    else:
        data = data.encode("latin1") if isinstance(data, str) else data
        data = _checked(data, bytes, bytearray, memoryview)
        flat = np.frombuffer(data, dtype) if data else np.empty(0, dtype)
    if nbytes_of(dtype, sizes) != flat.nbytes or (not flat.size and max(sizes) > _MAX_EMPTY):
        raise BadRecord(f"An array of {dtype} {sizes} does not have as many bytes.")
    return check_text(flat.reshape(sizes, order=order).copy())


def _checked(found: Any, *kinds: type) -> Any:
    if not isinstance(found, kinds):
        raise BadRecord(f"It is damaged: a {type(found).__name__} is in a wrong place.")
    return found


class _File(io.BytesIO):
    def readline(self, size: Any = None) -> bytes:
        return super().readline(256)  # a number of many digits would take long


def _unpickled(value: bytes) -> Any:
    """Carries out the opcodes of a pickle; raises almost any error if it is damaged.

    None takes more time than the bytes before it. So nothing is hashed, copied or shown that is
    nested: a tuple can have the same tuple twice, that one another, and so on.
    """
    tools = importlib.import_module("pickletools")  # a large module, rarely needed
    stack, marks, memo = [], [], {}  # type: List[Any], List[int], Dict[int, Any]
    left = _MAX_COPIES * len(value)
    for opcode, argument, _ in tools.genops(_File(value)):
        name, before = opcode.name, opcode.stack_before
        if name in ("PROTO", "FRAME", "STOP"):
            continue
        if name == "MARK":
            marks.append(len(stack))
        elif name in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            memo[len(memo) if argument is None else argument] = stack[-1]
        elif not before:
            stack.append(_pushed(opcode, argument, memo))
        else:
            # Before values above a mark there can be the one that they change.
            marked = before.index(tools.markobject) if tools.markobject in before else None
            begin = len(stack) - len(before) if marked is None else marks.pop() - marked
            if begin < 0:
                raise BadRecord(f"It is a damaged pickle: {name} of values that are not there.")
            if name in ("REDUCE", "NEWOBJ", "BUILD"):  # which copy what is in a tuple
                left -= sum(len(e) for e in (stack[-1], *stack[-1]) if hasattr(e, "__len__"))
                if left < 0:
                    raise BadRecord("It is a damaged pickle: it copies more than it has.")
            stack[begin:] = [_combined(name, stack[begin:])]
    (found,) = stack
    if _measure(found, {}, _MOST)[1] > _MAX_SHARED * len(value):
        raise BadRecord("It is a damaged pickle: all of it is in there again and again.")
    return found


def _pushed(opcode: Any, argument: Any, memo: Dict[int, Any]) -> Any:
    """Returns what an opcode puts on the stack that takes nothing from there."""
    if opcode.name in ("BINGET", "LONG_BINGET"):
        return getattr(memo[argument], "made", memo[argument])
    if opcode.name == "GLOBAL":
        return _function(*argument.split(" "))
    kind = opcode.stack_after[0].obtype
    if kind is object:  # and not None, a number, text, bytes, or an empty container
        raise BadRecord(f"It is a damaged pickle: the opcode {opcode.name}.")
    return argument if opcode.arg else opcode.name == "NEWTRUE" or kind()


def _combined(name: str, items: List[Any]) -> Any:
    """Returns what an opcode makes of values on the stack; the first may be what is changed."""
    if name.startswith("TUPLE"):
        return tuple(items)
    if name == "FROZENSET":
        return frozenset(_keys(items))
    if name == "STACK_GLOBAL":
        return _function(*items)
    first, *others = items
    if name in ("APPEND", "APPENDS"):
        _checked(first, list).extend(others)
    elif name in ("SETITEM", "SETITEMS"):
        _checked(first, dict).update(zip(_keys(others[::2]), others[1::2]))
    elif name == "ADDITEMS":
        _checked(first, set).update(_keys(others))
    elif name in ("REDUCE", "NEWOBJ", "BUILD"):
        kind = _Made if name == "BUILD" else types.FunctionType
        return _checked(first, kind)(*_checked(others[0], tuple))
    else:
        raise BadRecord(f"It is a damaged pickle: the opcode {name}.")
    return first


def _function(module: Any, name: Any) -> Any:
    """Returns what stands for a function that a pickle names."""
    if (_checked(module, str), _checked(name, str)) not in _KNOWN:
        raise RefusedRecord(
            f"It is a pickle that needs {module:.99}.{name:.99}, which could run any code: only "
            "containers, numbers, text, bytes and numpy arrays are read. If you trust the file, "
            "read it with allow_pickle=True, or in a script of your own."
        )
    return _KNOWN[module, name]


def _keys(found: Any) -> Any:
    """Returns the keys of a dict or the elements of a set, if each is hashed quickly."""
    for key in _checked(found, list, tuple):
        for part in key if isinstance(key, tuple) and len(key) <= _MOST else (key,):
            # Any number of NaN, or of large integers, have one hash.
            is_many = part.bit_length() > 64 if type(part) is int else part != part
            if not isinstance(part, _KEYS) or is_many:
                raise BadRecord(f"It has a {type(part).__name__} as a key, or in a set.")
    return found


class _Made:
    """What `_reconstruct` or, with a name, `numpy.dtype` makes; `made` once its state is set."""

    def __init__(self, name: Any = None) -> None:
        self._name, self.made = name, self  # type: Any, Any

    def __call__(self, _: Any, *state: Any) -> Any:
        if self._name is None:
            shape, dtype, is_fortran, data = state
            self.made = array_of(data, dtype, shape, "F" if is_fortran is True else "C")
        elif self._name in ("O", "O4", "O8"):
            self.made = np.dtype(object)
        elif self._name[:1] in ("m", "M") or any(each is not None for each in state[1:4]):
            raise RefusedRecord(f"It has an array of dtype {self._name!r:.80}, with more to it.")
        else:
            self.made = _plain_dtype((state[0] if state[0] in ("<", ">") else "|") + self._name)
        return self.made


def _from_buffer(data: Any, dtype: Any, shape: Any, order: Any, axes: Any = None) -> Any:
    """Makes an array as a pickle of protocol 5 has it."""
    made = array_of(data, dtype, shape, "F" if order == "F" else "C")
    return made if order != "K" or axes is None else made.transpose(axes)


def _encoded(text: Any = "", encoding: Any = "latin1") -> bytes:
    """Makes bytes, which a pickle of protocol 2 has as text."""
    return text if isinstance(text, bytes) else _checked(text, str).encode("latin1")


_KNOWN: Dict[Tuple[str, str], Any] = {
    ("numpy", "dtype"): lambda name, *_: _Made(_checked(name, str)),
    ("numpy", "ndarray"): _Made,  # only ever handed to `_reconstruct`
    ("_codecs", "encode"): _encoded,
    ("collections", "OrderedDict"): lambda pairs=(): collections.OrderedDict(
        zip(_keys([key for key, _ in pairs]), [value for _, value in pairs])
    ),
}
for _core in "numpy.core", "numpy._core":
    _KNOWN[f"{_core}.multiarray", "_reconstruct"] = lambda *_: _Made()
    _KNOWN[f"{_core}.multiarray", "scalar"] = lambda dtype, data: array_of(data, dtype, ())[()]
    _KNOWN[f"{_core}.numeric", "_frombuffer"] = _from_buffer
for _builtins in "builtins", "__builtin__":
    _KNOWN[_builtins, "bytes"] = _encoded
    _KNOWN[_builtins, "complex"] = lambda *args: complex(*(_checked(n, float) for n in args))
    _KNOWN[_builtins, "set"] = lambda found=(): set(_keys(found))
    _KNOWN[_builtins, "frozenset"] = lambda found=(): frozenset(_keys(found))

_KEYS = (type(None), int, float, str, bytes, np.bool_, np.integer)
_LEAVES = (type(None), int, float, complex, str, bytes, bytearray, set, frozenset, np.generic)


def _measure(found: Any, known: Dict[int, Tuple[int, int]], limit: int) -> Tuple[int, int]:
    """Returns how deep an object is nested and how many it has, what is shared as often as it is
    there; raises BadRecord if it is more than plain data. `known` has earlier results by id.
    """
    is_array = isinstance(found, np.ndarray)
    if isinstance(found, _LEAVES) or (is_array and not found.dtype.hasobject):
        return 0, 1
    if id(found) not in known:
        known[id(found)] = _MOST, 1  # as long as it is not done: if it is in itself
        below = list(found.values()) if isinstance(found, dict) else found
        below = found.ravel().tolist() if is_array else _checked(below, list, tuple)
        measured = [_measure(each, known, limit - 1) for each in below if limit]
        depths, counts = zip(*measured, (0, 1))
        known[id(found)] = 1 + max(depths), sum(counts)
    if not limit or known[id(found)][0] > _MOST:
        raise BadRecord("It is nested too deep, or in itself.")
    return known[id(found)]
