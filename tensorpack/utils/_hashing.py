"""Hashes a file in the one pass that reads it."""

import hashlib
from typing import Any, Optional, Tuple

PIECE_BYTES = 1 << 20  # hashed while the processor still has it in its cache


def hash_file(path: str, memory: Optional[Any] = None) -> Tuple[int, str]:
    """Returns the number of bytes of a file, and their hexadecimal SHA-256.

    `memory`, a writable buffer of bytes, receives the content; a file is read no further than it
    has room.
    """
    digest, size = hashlib.sha256(), 0
    piece = memoryview(bytearray(PIECE_BYTES)) if memory is None else memoryview(memory)
    with open(path, "rb", buffering=0) as file:
        while True:
            view = piece if memory is None else piece[size : size + PIECE_BYTES]
            count = file.readinto(view)
            if not count:
                return size, digest.hexdigest()
            digest.update(view[:count])
            size += count
