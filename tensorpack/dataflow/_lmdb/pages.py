"""Reads the pages of an LMDB file in Python alone, so that a damaged file can crash nothing.

liblmdb follows the numbers that it finds in a file, also out of the file. Here each of them is
checked before it is followed, in all pages that a reader can come to, and the keys come out on the
way. Of values that have pages of their own only the place is looked at: a file of large values is
checked in a small part of the time that reading it takes.

Only the format of LMDB 0.9 on machines of 64 bits is known here, which is the one in use. This
module imports nothing of this package, for `probe` runs `main` in a process of its own.
"""

import importlib
import json
import os
import struct
import sys
from typing import BinaryIO, Iterator, List, NamedTuple, Optional, Tuple

__all__ = ["Meta", "PageError", "is_known_format", "main", "read_keys", "read_meta"]

_MAGIC = 0xBEEFC0DE
_VERSION = 1
_NO_PAGE = 2**64 - 1
_BRANCH, _LEAF, _META = 1, 2, 8
_KINDS = {_BRANCH: "branch", _LEAF: "leaf", _META: "header"}
_OWN_PAGES = 1  # flag of a node whose value has pages of its own
_MOST_LEVELS = 32  # the height of liblmdb's stack
_MOST_BYTES = 2**47  # what can be mapped
_PAGE_SIZES = [2**power for power in range(9, 16)]

# In the byte order of the machine, as liblmdb writes them.
_HEADER = struct.Struct("=QHHHH")  # page number, -, kind, end of the list of nodes, first node
_NODE = struct.Struct("=IHH")  # size of the value, flags, size of the key
_NUMBER = struct.Struct("=Q")
# Magic, version, -, -; two databases; last page, transaction. A database is: size of a page (in
# the first one), flags, depth, -, -, -, entries, root.
_META_FIELDS = struct.Struct("=IIQQ IHHQQQQQ IHHQQQQQ QQ")


class PageError(Exception):
    """Something in the file cannot be right.

    Attributes:
      offset: where it stands, in bytes; None if that is not known.
      reason: what it is.
    """

    def __init__(self, offset: Optional[int], reason: str) -> None:
        super().__init__(offset, reason)
        self.offset = offset
        self.reason = reason


class Meta(NamedTuple):
    """What the header of a file says about the main database."""

    page_size: int
    flags: int
    depth: int
    entries: int
    root: int
    last_page: int
    transaction: int


def is_known_format(file: BinaryIO) -> bool:
    """Whether the file has the format that is known here.

    Raises:
      PageError: it is no LMDB file at all.
    """
    file.seek(0)
    start = file.read(64)
    if not start:
        raise PageError(0, "The file is empty.")
    for position in (_HEADER.size, _HEADER.size + 8):  # LMDB 1.0 has longer headers
        if len(start) >= position + 8:
            magic, version = struct.unpack_from("=II", start, position)
            if magic == _MAGIC:
                return position == _HEADER.size and version == _VERSION
    raise PageError(0, "This is not an LMDB file, or it comes from a machine of another kind.")


def read_meta(file: BinaryIO) -> Meta:
    """Returns the newer one of the two headers of a file of the known format.

    Raises:
      PageError: one of them is damaged.
    """
    first = _meta_at(file, 0, 0)
    second = _meta_at(file, 1, first.page_size)
    meta, older, offset = first, second, 0
    if second.transaction > first.transaction:
        meta, older, offset = second, first, first.page_size
    in_order = _follow(first.transaction, second.transaction)
    if not in_order or meta.page_size != older.page_size or meta.last_page < older.last_page:
        raise PageError(offset, "The two headers of the file contradict each other.")
    if meta.flags:
        raise PageError(offset, "The keys are of a special kind, which is not read here.")
    if meta.last_page >= _MOST_BYTES // meta.page_size:
        raise PageError(offset, f"The header speaks of {meta.last_page} pages.")
    if (meta.root == _NO_PAGE) != (meta.entries == 0) or meta.depth > _MOST_LEVELS:
        raise PageError(offset, "The header of the file contradicts itself.")
    return meta


def read_keys(file: BinaryIO) -> Iterator[bytes]:
    """Yields all keys of the main database in order, and checks all pages on the way.

    Args:
      file: of the known format, open for reading.

    Raises (while iterating):
      PageError: something is damaged. Keys that were yielded before may be wrong.
    """
    tree = _Tree(file, read_meta(file))
    before, count = b"", 0
    for number in tree.leaves():
        for key in tree.keys(number):
            if key <= before:
                raise PageError(tree.offset(number), f"The key {key!r} is not in its place.")
            before = key
            count += 1
            yield key
    if count != tree.meta.entries:
        raise PageError(
            None, f"There are {count} records, but the header says {tree.meta.entries}."
        )


class _Tree:
    """The pages of the main database, each of which is read at most once."""

    def __init__(self, file: BinaryIO, meta: Meta) -> None:
        self.meta = meta
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self._named = bytearray(self._size // meta.page_size + 1)

    def offset(self, number: int) -> int:
        """Returns where a page begins, in bytes."""
        return number * self.meta.page_size

    def leaves(self) -> List[int]:
        """Returns the pages that hold the records, in the order of their keys."""
        if self.meta.root == _NO_PAGE:
            return []
        if not self.meta.depth:
            raise PageError(0, "The header of the file contradicts itself.")
        level = [self._name(self.meta.root, 0)]
        for _ in range(self.meta.depth - 1):
            level = [child for number in level for child in self._children(number)]
        return level

    def keys(self, number: int) -> Iterator[bytes]:
        """Yields the keys of a leaf after checking where their values are."""
        page, positions = self._nodes(number, _LEAF, 1)
        for position in positions:
            size, flags, key_size = _NODE.unpack_from(page, position)
            begin = position + _NODE.size
            end = begin + key_size
            stored = _NUMBER.size if flags else size
            if flags & ~_OWN_PAGES or not key_size or end + stored > len(page):
                # Named databases and duplicate keys have other flags.
                raise PageError(
                    self.offset(number) + position, "A record is damaged, or of a special kind."
                )
            key = page[begin:end]
            if flags:
                self._check_value(key, self.offset(number) + end, size, page, end)
            yield key

    def _check_value(self, key: bytes, offset: int, size: int, page: bytes, at: int) -> None:
        (first,) = _NUMBER.unpack_from(page, at)
        used = _HEADER.size + size
        last = first + (used - 1) // self.meta.page_size
        inside = 2 <= first and last <= self.meta.last_page
        if not inside or self.offset(first) + used > self._size:
            raise PageError(offset, f"The value of the key {key!r} lies outside of the file.")

    def _children(self, number: int) -> Iterator[int]:
        page, positions = self._nodes(number, _BRANCH, 2)
        for position in positions:
            low, high, key_size = _NODE.unpack_from(page, position)
            if position + _NODE.size + key_size > len(page):
                raise PageError(self.offset(number) + position, "A key is longer than its page.")
            yield self._name(low | high << 32, self.offset(number) + position)

    def _name(self, number: int, offset: int) -> int:
        """Returns the number of a page that is named at an offset; each may be named once."""
        if (
            not 2 <= number <= self.meta.last_page
            or self.offset(number + 1) > self._size
            or self._named[number]
        ):
            raise PageError(offset, f"Page {number}, which is named here, cannot be a part.")
        self._named[number] = 1
        return number

    def _nodes(self, number: int, kind: int, least: int) -> Tuple[bytes, Tuple[int, ...]]:
        """Returns a page and where its nodes begin, of which there are at least so many."""
        offset, size = self.offset(number), self.meta.page_size
        page = _read(self._file, offset, size)
        own, _, found, lower, upper = _HEADER.unpack_from(page)
        count, odd = divmod(lower - _HEADER.size, 2)
        if own != number or found != kind:
            raise PageError(offset, f"Page {number} should be a {_KINDS[kind]} page, and is not.")
        if count < least or odd or not lower <= upper <= size:
            raise PageError(offset, f"Page {number} has a damaged header.")
        positions = struct.unpack_from(f"={count}H", page, _HEADER.size)
        if min(positions) < upper or max(positions) + _NODE.size > size:
            raise PageError(offset, f"Page {number} has a damaged list of records.")
        return page, positions


def _follow(first: int, second: int) -> bool:
    """Whether two transactions in a row, or none, wrote the headers, each the one that is its."""
    return first == second == 0 or (first % 2 == 0 and abs(first - second) == 1)


def _meta_at(file: BinaryIO, number: int, offset: int) -> Meta:
    data = _read(file, offset, _HEADER.size + _META_FIELDS.size)
    kind = _HEADER.unpack_from(data)[2]
    fields = _META_FIELDS.unpack_from(data, _HEADER.size)
    meta = Meta(fields[4], fields[13], fields[14], *fields[18:22])
    if kind != _META or fields[:2] != (_MAGIC, _VERSION) or meta.page_size not in _PAGE_SIZES:
        raise PageError(offset, f"Page {number} should be a header page, and is not.")
    return meta


def _read(file: BinaryIO, offset: int, count: int) -> bytes:
    file.seek(offset)
    data = file.read(count)
    if len(data) < count:
        raise PageError(offset, "The file ends here, in the middle of a page.")
    return data


def main(path: str) -> None:
    """Checks a file, also by liblmdb, and writes the result to standard output as JSON.

    It is `{"records": N}` or `{"reason": TEXT, "offset": BYTES or null}`, on the last line.
    """
    _leave_no_core_file()
    try:
        report = {"records": _check(path)}
    except PageError as error:
        report = {"reason": error.reason, "offset": error.offset}  # type: ignore[dict-item]
    sys.stdout.write("\n" + json.dumps(report) + "\n")


def _check(path: str) -> int:
    count: Optional[int] = None
    with open(path, "rb") as file:
        if is_known_format(file):
            count = sum(1 for _ in read_keys(file))
    lmdb = importlib.import_module("lmdb")
    try:
        with lmdb.open(path, subdir=False, readonly=True, create=False, lock=False) as env:
            entries = env.stat()["entries"]
            with env.begin() as transaction, transaction.cursor() as cursor:
                if count is None:  # nothing is known about the pages: all of them are read
                    count = sum(1 for _ in cursor)
                elif count:
                    cursor.first()
                    cursor.last()
    except lmdb.Error as error:
        raise PageError(None, f"LMDB cannot read it: {error}") from error
    if count != entries:
        raise PageError(None, f"There are {count} records, but LMDB says {entries}.")
    return count


def _leave_no_core_file() -> None:
    try:
        resource = importlib.import_module("resource")
    except ImportError:  # not on this system
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
