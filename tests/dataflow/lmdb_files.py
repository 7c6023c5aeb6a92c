"""LMDB files for tests: as others write them, as old versions wrote them, and damaged ones."""

import os

import lmdb
import numpy as np

PAGE = 4096  # bytes


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
    with open(copy, "wb") as file:
        file.write(changed)
    return copy
