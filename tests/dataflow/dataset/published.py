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


def write_image(path, image):
    """An image file, from uint8 `[h, w, 3]` in BGR or `[h, w]`; PNG whatever its name, so exact."""
    import cv2

    path.parent.mkdir(parents=True, exist_ok=True)
    good, content = cv2.imencode(".png", image)
    assert good
    path.write_bytes(content.tobytes())


def matlab(**variables):
    """The content of a file of MATLAB."""
    from scipy.io import savemat

    file = io.BytesIO()
    savemat(file, variables, do_compression=True)
    return file.getvalue()


def ground_truth(*boundaries):
    """The content of a file of BSDS500 with what each person drew."""
    cell = np.empty((1, len(boundaries)), object)
    for index, each in enumerate(boundaries):
        cell[0, index] = {"Segmentation": np.ones(each.shape, np.uint16), "Boundaries": each}
    return matlab(groundTruth=cell)


def mean_image(mean):
    """The content of `imagenet_mean.binaryproto` for floats `[3, h, w]`."""
    content = mean.astype("<f4").tobytes()
    size = [0x80 | len(content) & 0x7F, 0x80 | len(content) >> 7 & 0x7F, len(content) >> 14]
    return bytes([0x08, 1, 0x10, 3, 0x18, 0x80, 2, 0x20, 0x80, 2, 0x2A, *size]) + content
