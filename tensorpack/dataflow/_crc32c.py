"""CRC-32C, the checksum of TFRecord files: by `google_crc32c` if it is there, or else by numpy.

A checksum of this kind is linear: that of a block is the exclusive or of what each of its bytes
adds, and what a byte adds depends on its value and on how many bytes follow it. One table holds
that for every value at every place in a block of 1 KiB. So numpy looks up many blocks at once
and reduces each to one number, and only one step in each block is left to Python. Python alone,
byte by byte, is many times slower; it is used where there are but a few bytes.
"""

import functools
from typing import Callable, List, NamedTuple

import numpy as np

from tensorpack.utils.optional import require

__all__ = ["crc32c", "crc32c_by_numpy", "masked_crc32c"]

_POLYNOMIAL = np.uint32(0x82F63B78)  # Castagnoli's, lowest bit first
_ONES = 0xFFFFFFFF
_MASK_DELTA = 0xA282EAD8
_BLOCK = 1024  # bytes
_BLOCKS_AT_ONCE = 64  # what numpy makes of them stays in the cache of a processor
_FEW = 128  # bytes, for which numpy is not worth while


def crc32c(data: bytes) -> int:
    """Returns the CRC-32C of some bytes, an integer in [0, 2**32)."""
    return _fastest()(data)


def masked_crc32c(data: bytes) -> int:
    """Returns the checksum as TFRecord files have it: turned by 15 bits, plus a constant."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ONES


def crc32c_by_numpy(data: bytes) -> int:
    """Returns the CRC-32C of some bytes, also where `google_crc32c` is not installed."""
    tables = _tables()
    if len(data) < _FEW:
        return _byte_by_byte(data, tables.last)
    padding = -len(data) % _BLOCK
    padded = np.zeros(padding + len(data), np.uint8)  # zeros in front add nothing
    padded[padding:] = np.frombuffer(data, np.uint8)
    padded[padding : padding + 4] ^= 0xFF  # the same as to begin with all bits set
    blocks = padded.reshape(-1, _BLOCK)
    one, two, three, four = tables.first_four
    crc = 0
    for begin in range(0, len(blocks), _BLOCKS_AT_ONCE):
        places = blocks[begin : begin + _BLOCKS_AT_ONCE] + tables.offsets
        for added in np.bitwise_xor.reduce(tables.all.take(places), axis=1).tolist():
            # What came before counts as the first four bytes of this block.
            crc = (
                one[crc & 255] ^ two[crc >> 8 & 255] ^ three[crc >> 16 & 255] ^ four[crc >> 24]
            ) ^ added
    return crc ^ _ONES


def _byte_by_byte(data: bytes, table: List[int]) -> int:
    crc = _ONES
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc ^ _ONES


class _Tables(NamedTuple):
    """What bytes add to a checksum.

    Attributes:
      all: uint32 `[_BLOCK * 256]`, by place in a block and value.
      offsets: intp `[_BLOCK]`, where the values of each place begin in `all`.
      first_four: those of the first four places, as lists of Python integers.
      last: that of the last place.
    """

    all: np.ndarray
    offsets: np.ndarray
    first_four: List[List[int]]
    last: List[int]


@functools.lru_cache(maxsize=1)
def _tables() -> _Tables:
    last = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        last = np.where(last & 1, (last >> 1) ^ _POLYNOMIAL, last >> 1)
    places = [last]
    while len(places) < _BLOCK:
        places.append(last[places[-1] & 255] ^ (places[-1] >> 8))  # followed by one byte more
    places.reverse()
    return _Tables(
        all=np.concatenate(places),
        offsets=np.arange(_BLOCK, dtype=np.intp) * 256,
        first_four=[place.tolist() for place in places[:4]],
        last=last.tolist(),
    )


@functools.lru_cache(maxsize=1)
def _fastest() -> Callable[[bytes], int]:
    try:
        google = require("google_crc32c", "google-crc32c")
    except ImportError:
        return crc32c_by_numpy
    # Where it was built without its C part, it goes byte by byte.
    return google.value if google.implementation == "c" else crc32c_by_numpy
