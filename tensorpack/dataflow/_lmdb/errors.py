"""Errors of LMDB files that name the file, and the key and the byte where they are known.

`BadRecord` and `RefusedRecord` are for those who decode a value and know neither file nor key;
whoever does makes a public error of them.
"""

from typing import Optional

from .._files import DamagedFile

__all__ = ["BadRecord", "DamagedLMDB", "RefusedRecord"]


class DamagedLMDB(DamagedFile):
    """An LMDB file, or a record in it, cannot be used.

    Attributes:
      path: the file.
      reason: what is wrong.
      key: of the record, or None.
      offset: the place in the file, in bytes, or None.
    """

    def __init__(
        self, path: str, reason: str, key: Optional[bytes] = None, offset: Optional[int] = None
    ) -> None:
        super().__init__(path, reason, key, offset)  # all of them: it may be pickled
        self.path = path
        self.reason = reason
        self.key = key
        self.offset = offset

    def __str__(self) -> str:
        key = "" if self.key is None else f", key {self.key!r}"
        offset = "" if self.offset is None else f", byte {self.offset}"
        return f"{self.path}{key}{offset}: {self.reason}"


class BadRecord(Exception):
    """A value is damaged, or is not what it is taken for."""


class RefusedRecord(Exception):
    """A value that may be whole, but is not decoded; going past it would hide a wrong argument."""
