"""The bytes of a datapoint are about those of its arrays and texts."""

import numpy as np
import pytest

from tensorpack.dataflow._threads.workers import nbytes_of

IMAGE = np.zeros((10, 10, 3), np.uint8)


@pytest.mark.parametrize(
    "datapoint, least, most",
    [
        ([IMAGE], 300, 300),
        (IMAGE, 300, 300),
        ((IMAGE, np.float64(1)), 308, 308),
        ({"a": IMAGE, "b": [IMAGE, IMAGE]}, 900, 900),
        ([[[IMAGE]]], 300, 300),
        ([[IMAGE] * 1000], 300000, 300000),
        ([{"image": IMAGE}] * 100, 30000, 30000),
        ([memoryview(bytes(200))], 200, 200),
        ([b"x" * 1000, 3], 1000, 1200),
        (["x" * 1000], 1000, 1200),
        ([bytearray(1000)], 1000, 1200),
        ([], 0, 200),
        (None, 0, 200),
    ],
)
def test_size_of_a_datapoint(datapoint, least, most):
    assert least <= nbytes_of(datapoint) <= most


def test_size_of_what_contains_itself():
    datapoint = [IMAGE]
    datapoint.append(datapoint)
    assert 300 <= nbytes_of(datapoint) <= 300 * 1000
