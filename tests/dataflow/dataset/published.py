"""Writes small files in the formats in which the datasets are published."""

import gzip
import io
import struct
import tarfile

import numpy as np


def write_idx(path, array):
    """A compressed IDX file; returns its path."""
    header = struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim, *array.shape)
    path.write_bytes(gzip.compress(header + array.tobytes()))
    return path


def write_mnist(folder, images, labels, part="train"):
    """The two files of a part of MNIST: uint8 `[N, 28, 28]` and `[N]`."""
    folder.mkdir(parents=True, exist_ok=True)
    prefix = {"train": "train", "test": "t10k"}[part]
    write_idx(folder / f"{prefix}-images-idx3-ubyte.gz", images)
    write_idx(folder / f"{prefix}-labels-idx1-ubyte.gz", labels)


def cifar_records(images, *labels):
    """Records of CIFAR as bytes: images uint8 `[N, 32, 32, 3]`, and labels uint8 `[N]`."""
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    return np.concatenate([*(each[:, None] for each in labels), planes], axis=1).tobytes()


def write_archive(path, contents):
    """A compressed archive of files with these names and contents."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(str(path), "w:gz") as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def random_images(*shape, seed=0):
    """Random uint8 images."""
    return np.random.RandomState(seed).randint(0, 256, size=shape).astype(np.uint8)
