"""The values in the files of `tests/data`, which the library wrote at commit dd9d8767."""

import struct

import numpy as np

from tests.utils.frames import msgpack

INNER = np.dtype([("x", "<f4"), ("y", "<i2", (2, 3))], align=True)
DTYPES = "|b1 |u1 |i1 <u2 >u2 <i4 >i4 <i8 >u8 <f2 >f4 <f8 <c8 >c16 |S1 |S5 <U1 >U3".split()
NAN = struct.unpack("<d", bytes.fromhex("010000000000f8ff"))[0]
VALUES = {
    "plain": [None, True, False, 0, -1, 127, 128, 2**63, -(2**63), 1.5, -0.0, float("inf"), NAN],
    "integers": [2**64 - 1, 2**64, -(2**63) - 1, 2**127 + 5, -(10**40)],
    "text": ["", "a" * 40, "caf\xe9 \U0001f600", b"", b"\0\xff" * 200, "\ud83d half", "\udc80"],
    "containers": [(), (1, (2, [3, (4,)])), {}, {1: {(1, None): ["a"]}, b"k": (), None: 2.5}],
    "small": [np.arange(6).astype(dtype).reshape(2, 3) for dtype in DTYPES],
    "large": [(np.arange(1040 // np.dtype(d).itemsize) % 100).astype(d) for d in DTYPES],
    "scalars": [np.arange(50, 51).astype(dtype)[0] for dtype in DTYPES[:14]],
    "shapes": [np.zeros(shape, "<i2") for shape in [(), (0,), (2, 0, 4), (1,) * 32, (513,)]],
    "orders": [
        np.asfortranarray(np.arange(120).reshape(12, 10)),
        np.arange(300, dtype="<i4")[::-2],
        np.broadcast_to(np.arange(90.0), (2, 90)),
    ],
    "dates": [np.array(["2020-01-02", "NaT"], "M8[D]"), np.timedelta64(5, "25s")],
    "moment": [np.datetime64("2020-01-02T03:04", "m"), msgpack.Timestamp(1, 2)],
    "words": [np.str_("a\0"), np.str_("\U0001f600\udc80"), np.bytes_(b"a\0\0"), np.bytes_(b"")],
    "records": [
        np.array((1, [[2, 3, 4], [5, 6, 7]]), INNER)[()],
        np.zeros((2, 30), INNER)[:, ::4],
        np.zeros(3, [("a", INNER), ("b", "S3"), ("c", "<U2")])[::2],
        np.zeros((0, 2), INNER),
        np.array((1, 2), "u1,>f8"),
        np.zeros(60, "u1,>f8"),
    ],
}
DATAPOINTS = [
    {"image": np.full((3, 4, 3), i, np.uint8), "boxes": np.arange(100.0) + i, "n": (i, "t")}
    for i in range(3)
]
WEIGHTS = {
    "conv/W": np.arange(54, dtype=np.float32).reshape(3, 3, 2, 3),
    "file": np.asfortranarray(np.arange(6, dtype=">i4").reshape(3, 2)),
    "global_step": np.int64(7),
    "names": np.array(["a", "bc"]),
    "empty": np.zeros((0, 3), np.uint8),
}
