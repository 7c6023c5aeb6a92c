"""Random arrays have the shapes, dtypes and ranges that were asked for."""

import numpy as np
import pytest

from tensorpack.dataflow import FakeData
from tests.contracts.dataflow import contract_of

TestFakeData = contract_of(lambda: FakeData([[2, 3], []], size=12), length=12, deterministic=False)
TestConstantFakeData = contract_of(
    lambda: FakeData([[2, 3], []], size=12, random=False, dtype=["uint8", "float32"]), length=12
)


def test_default_is_float32_in_the_unit_interval():
    flow = FakeData([[50, 40], (7,)])
    assert len(flow) == 1000
    image, label = next(iter(flow))
    assert image.dtype == label.dtype == np.float32
    assert (image.shape, label.shape) == ((50, 40), (7,))
    assert 0 <= image.min() < 0.1 and 0.9 < image.max() <= 1


def test_dtype_and_domain_of_each_component():
    flow = FakeData(
        [[500], [500], [500], [500]],
        dtype=["uint8", "float64", "bool", "int32"],
        domain=[(0, 256), (-2, -1), (0, 1), (-3, 3)],
    )
    bytes_, floats, bools, integers = next(iter(flow))
    assert bytes_.dtype == np.uint8
    assert bytes_.max() > 230
    assert floats.dtype == np.float64
    assert -2 <= floats.min() and floats.max() <= -1
    assert set(bools.tolist()) == {False, True}
    assert set(integers.tolist()) == {-3, -2, -1, 0, 1, 2}


def test_numbers_reach_the_ends_of_their_dtype():
    limits = np.iinfo(np.int64)
    (values,) = next(iter(FakeData([[9]], dtype="int64", domain=(limits.min, limits.max + 1))))
    assert values.dtype == np.int64
    (zeros,) = next(iter(FakeData([[9]], dtype="uint8")))
    assert not zeros.any()
    (values,) = next(iter(FakeData([[99]], dtype="float16", domain=(-65504, 65504))))
    assert np.isfinite(values).all() and np.abs(values).max() > 30000


def test_random_arrays_differ_and_constant_ones_are_shared():
    one, two = list(FakeData([[8]], size=4 / 2))
    assert not np.array_equal(one, two)
    one, two = list(FakeData([[8]], size=2, random=False))
    assert one[0] is two[0]
    assert one is not two


def test_shapes_of_arrays():
    for shapes in np.array([[2, 3]]), [np.zeros((2, 3)).shape], iter([iter([2, np.int64(3)])]):
        flow = FakeData(shapes, 1)
        assert [component.shape for (component,) in list(flow) + list(flow)] == [(2, 3)] * 2
    assert list(FakeData([], 2)) == [[], []]


def test_each_component_has_a_dtype():
    with pytest.raises(ValueError, match="broadcast"):
        FakeData([[2]], dtype=["uint8", "uint8"])


def test_a_domain_may_be_an_array():
    (values,) = next(iter(FakeData([[99]], dtype="uint8", domain=np.array([3, 5]))))
    assert set(values.tolist()) == {3, 4}
