"""What `dumps` of old versions made of objects."""

import struct

import numpy as np


def pack_of_2017(obj):
    """Returns what `dumps` of 2017 made of an object."""
    import msgpack

    def encode(each):
        if isinstance(each, np.ndarray):
            return {
                b"nd": True,
                b"type": each.dtype.str,
                b"kind": b"",
                b"shape": each.shape,
                b"data": each.tobytes(),
            }
        if isinstance(each, np.generic):
            return {b"nd": False, b"type": each.dtype.str, b"data": each.tobytes()}
        assert isinstance(each, complex)
        return {b"complex": True, b"data": repr(each)}

    return msgpack.packb(obj, default=encode, use_bin_type=True)


def pickle_of_python_2(obj):
    """Returns what `cPickle.dumps(obj, 2)` of Python 2 made, with numpy of that time."""
    return b"\x80\x02" + _opcodes(obj) + b"."


def _opcodes(obj):
    if isinstance(obj, (str, bytes)):  # one type there
        data = obj.encode("latin1") if isinstance(obj, str) else obj
        return b"T" + struct.pack("<i", len(data)) + data
    if isinstance(obj, int):
        fits = -(1 << 31) <= obj < 1 << 31
        return b"J" + struct.pack("<i", obj) if fits else b"I%d\n" % obj
    if isinstance(obj, list):
        return b"](" + b"".join(map(_opcodes, obj)) + b"e"
    if isinstance(obj, tuple):
        return b"(" + b"".join(map(_opcodes, obj)) + b"t"
    if isinstance(obj, dict):
        return b"}(" + b"".join(_opcodes(each) for pair in obj.items() for each in pair) + b"u"
    kind = b"O8" if obj.dtype.hasobject else obj.dtype.str[1:].encode()
    order = obj.dtype.str[:1].encode()
    begin = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + _opcodes((0,))
    dtype = b"cnumpy\ndtype\n" + _opcodes((kind, 0, 1)) + b"R(K\x03" + _opcodes(order)
    dtype += b"NNN" + _opcodes(-1) * 2 + b"K\x00tb"
    data = _opcodes(obj.ravel().tolist() if obj.dtype.hasobject else obj.tobytes())
    state = b"(K\x01" + _opcodes(obj.shape) + dtype + b"\x89" + data + b"t"
    return begin + _opcodes(b"b") + b"\x87R" + state + b"b"
