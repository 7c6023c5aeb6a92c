"""The curves of `make bench ARGS=--growth`: their exponents, their table and their page."""

import growth
import pytest


@pytest.mark.parametrize("power, verdict", [(1, "yes"), (2, "**no**")])
def test_the_exponent_is_that_of_the_upper_half(power, verdict):
    points = [(at, 1000.0 + at**power) for at in (1, 10, 10**5, 10**6)]
    assert growth.exponent(points) == pytest.approx(power, abs=0.01)
    text = growth.table({"list": {"tensorpack": {"pass": points}}})
    assert text.endswith(f"| {power:.2f} | {verdict} |")
