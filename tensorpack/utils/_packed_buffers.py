"""Refuses the buffers in an object of which msgpack would make bytes."""

from itertools import chain
from typing import Any

__all__ = ["refuse_buffers"]

_BUFFERS = (bytearray, memoryview)
_LOOKED_AT = frozenset([*_BUFFERS, list, tuple, dict])


def refuse_buffers(obj: Any, structure: bytes) -> None:
    """Raises TypeError if there is a bytearray or memoryview in an object.

    Args:
      obj: the object.
      structure: what msgpack has made of it. Without a mark of bytes in it, as most are, the object
        need not be looked through.
    """
    if 0xC4 in structure or 0xC5 in structure or 0xC6 in structure:  # where bytes begin
        _look_through(obj)


def _look_through(obj: Any) -> None:
    parts = [obj]
    if type(obj) in (list, tuple):
        parts = obj
    elif type(obj) is dict:
        parts = [*obj, *obj.values()]
    while not _LOOKED_AT.isdisjoint(map(type, parts)):
        # All of one depth together, for a call for each takes longer than packing.
        held = [part for part in parts if type(part) in _LOOKED_AT]
        for part in held:
            if isinstance(part, _BUFFERS):
                raise TypeError(
                    f"a {type(part).__name__} cannot be sent or stored, for it would come back as "
                    "bytes. Make it bytes(...), or an array by np.asarray(...)."
                )
        held += [part.values() for part in held if type(part) is dict]
        parts = [*chain.from_iterable(held)]
