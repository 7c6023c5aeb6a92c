"""What `dumps` of old versions made of objects."""

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
