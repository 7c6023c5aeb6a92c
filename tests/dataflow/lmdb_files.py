"""LMDB files for tests: as others write them, as old versions wrote them, and damaged ones."""

import os
import random
import struct
import sys

import lmdb
import numpy as np

from tensorpack.dataflow.files.lmdb_check import check
from tensorpack.dataflow.files.lmdb_file import DamagedLMDB, LMDBSerializer

PAGE = 4096  # bytes
COUNT = 64  # datapoints of the file `whole`


def write_raw(path, items):
    """Writes keys and values as they are, to a file or into a directory that exists."""
    with lmdb.open(str(path), map_size=2**26, subdir=os.path.isdir(str(path))) as env:
        with env.begin(write=True) as transaction:
            for key, value in items:
                transaction.put(key, value)
    return str(path)


def change_values(path, changes):
    """Replaces the values of some keys of a file; None takes the key away."""
    with lmdb.open(path, map_size=2**26, subdir=False, lock=False) as env:
        with env.begin(write=True) as transaction:
            for key, value in changes.items():
                if value is None:
                    transaction.delete(key)
                else:
                    transaction.put(key, value)


def read_raw(path):
    """Returns all keys and values of a file."""
    with lmdb.open(path, subdir=False, readonly=True, lock=False) as env:
        with env.begin() as transaction:
            return dict(transaction.cursor())


def sample(count):
    """Datapoints of all sizes: some lie in the page of their key, some have many of their own."""
    rng = np.random.RandomState(0)
    sizes = [3, 3000, 20, 300, 100, 3, 20, 5000]
    return [
        [number, rng.randint(0, 256, sizes[number % len(sizes)]).astype(np.uint8)]
        for number in range(count)
    ]


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def damage(path, place, data):
    """Writes some bytes into a new copy of a file, and returns its path."""
    changed = bytearray(read_bytes(path))
    changed[place : place + len(data)] = data
    copy = path + "-damaged"
    if os.path.exists(copy):
        os.unlink(copy)  # not written over: it may be mapped
    with open(copy, "wb") as file:
        file.write(changed)
    return copy


def node_of(path, key):
    """The offset of the node of a key in its leaf: size of the value, flags, size of the key."""
    data = read_bytes(path)
    place = data.index(key)
    while struct.unpack_from("=Q2xH", data, place // PAGE * PAGE)[1] != 2:  # not a leaf page
        place = data.index(key, place + 1)
    return place - 8


def root_of(path):
    """The offset of the first page of the tree, by the newer header."""
    data = read_bytes(path)
    newer = max((0, PAGE), key=lambda page: struct.unpack_from("=Q", data, page + 144))
    return struct.unpack_from("=Q", data, newer + 128)[0] * PAGE


def flipped(data, page_size, seed=0):
    """Yields copies of a file, each with one bit changed; most of them in the pages of the tree."""
    rng = random.Random(seed)
    for page in range(0, len(data), page_size):
        number, kind = struct.unpack_from("=Q2xH", data, page)
        is_tree = number * page_size == page and kind in (1, 2)
        first = 160 if page < 2 * page_size else 30 if is_tree else 2
        for place in [*range(first), *rng.sample(range(page_size), 12 if is_tree else 2)]:
            changed = bytearray(data)
            changed[page + place] ^= 1 << rng.randrange(8)
            yield page + place, bytes(changed)


def cut(data, page_size):
    """Yields beginnings of a file."""
    sizes = {0, 1, 15, 16, 31, 100, page_size - 1, page_size + 100}
    for page in range(page_size, len(data), page_size):
        sizes |= {page, page + 1, page + page_size // 2}
    for size in sorted(sizes):
        yield size, data[:size]


def outcome(path, expected):
    """Checks a file in a forked process, reads it in this one; returns "right" or "error"."""
    child = os.fork()
    if child == 0:
        os._exit(3 if check(path) else 0)
    if os.waitpid(child, 0)[1] != 0:
        return "error"
    try:
        found = list(LMDBSerializer.load(path, shuffle=False, probe=False))
    except DamagedLMDB as error:
        assert path in str(error)
        return "error"
    assert [(number, array.tobytes()) for number, array in found] == [
        (number, array.tobytes()) for number, array in expected
    ]
    return "right"


def try_all(folder, kind):
    """Tries all damaged copies of the file `whole` in a folder; for a process of its own."""
    data, expected = read_bytes(os.path.join(folder, "whole")), sample(COUNT)
    outcomes = []
    for number, (place, damaged) in enumerate({"flipped": flipped, "cut": cut}[kind](data, PAGE)):
        path = os.path.join(folder, f"{kind}-{number}")  # a new file each: the last may be mapped
        with open(path, "wb") as file:
            file.write(damaged)
        sys.stderr.write(f"{kind} at {place}\n")
        outcomes.append(outcome(path, expected))
        os.unlink(path)
    sys.stdout.write(f"\n{len(outcomes)} {outcomes.count('right')} {outcomes.count('error')}\n")
