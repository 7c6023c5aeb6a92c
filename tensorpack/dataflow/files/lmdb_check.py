"""Reads an LMDB file from end to end, as a program of its own that a damaged file may crash.

`lmdb_open.probe` runs it by its path; it imports nothing of this package. Each record is visited in
order and found again by its key; a value must lie in the file and share no byte with another one.
"""

import importlib
import json
import os
import sys

import numpy as np

_BEYOND = 1 << 33  # bytes mapped after the end: an access to them ends the process


def check(path: str) -> str:
    """Returns what is wrong with a file, or nothing."""
    lmdb = importlib.import_module("lmdb")
    size = os.path.getsize(path)
    options = {"subdir": False, "readonly": True, "create": False, "lock": False}
    try:
        with lmdb.open(path, map_size=size + _BEYOND, **options) as env:
            last = env.info()["last_pgno"] * env.stat()["psize"]
            if last > size + _BEYOND // 2:
                return f"Its last page would be at byte {last}, but it has {size} bytes."
            with env.begin(buffers=True) as transaction:
                if env.open_db(txn=transaction, create=False).flags(transaction).get("dupsort"):
                    return "A key can have several values, which is not read."
                return _check_records(transaction, env.stat()["entries"], size)
    except lmdb.Error as error:
        return f"LMDB cannot read it: {error}"


def _check_records(transaction: object, entries: int, size: int) -> str:
    begins = np.zeros(entries, np.uint64) if entries <= size else np.zeros(0, np.uint64)
    sizes = np.zeros_like(begins)
    count = 0
    with transaction.cursor() as cursor:  # type: ignore[attr-defined]
        for key, value in cursor:
            if count == len(begins):
                return f"It has more than the {entries} records that its header names."
            found = transaction.get(key)  # type: ignore[attr-defined]
            place = _address(value)
            if found is None or len(found) != len(value) or _address(found) != place:
                return f"The key {bytes(key)!r} is not in its place."
            begins[count], sizes[count] = place, len(value)
            count += 1
    if count != entries:
        return f"It has {count} records, but its header names {entries}."
    filled = sizes > 0
    begins, sizes = begins[filled], sizes[filled]
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], (begins + sizes)[order]
    if len(begins) and (ends.max() - begins[0] > size or (begins[1:] < ends[:-1]).any()):
        return "A value lies outside of the file, or two of them overlap."
    return ""


def _address(value: memoryview) -> int:
    """Returns where a value is in memory, after an access to its last byte."""
    if not len(value):
        return 0
    value[-1]
    return np.frombuffer(value, np.uint8).__array_interface__["data"][0]


def main(path: str) -> None:
    """Checks a file, and writes `{"reason": TEXT}` to standard output, on the last line."""
    try:
        resource = importlib.import_module("resource")
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    except ImportError:  # not on this system
        pass
    sys.stdout.write("\n" + json.dumps({"reason": check(path)}) + "\n")
