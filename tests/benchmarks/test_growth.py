"""The curves of `make bench ARGS=--growth`: their exponents, their table and their page."""

import growth
import pytest
import run


@pytest.mark.parametrize("power, verdict", [(0, "yes"), (1, "yes"), (2, "**no**")])
def test_the_exponent_is_that_of_the_upper_half(power, verdict):
    points = [(at, 1000.0 + at**power) for at in (1, 10, 10**5, 10**6)]
    assert growth.exponent(points) == pytest.approx(power, abs=0.01)
    text = growth.table({"list": {"tensorpack": {"pass": points}}})
    assert text.endswith(f"| {power:.2f} | {verdict} |")


def test_a_curve_ends_where_a_point_fails(monkeypatch, capsys):
    def output_of(*command, python):
        if "1000" in command[-1]:
            raise RuntimeError("it ended with 1:\nNo memory")
        return 'RETURNED {"step": 2e-3, "start-up": 1, "memory": 600}\n'

    monkeypatch.setattr(growth, "output_of", output_of)
    curve = growth.CURVES["callbacks"]
    found = growth.measured(curve, growth.OURS, curve.points)
    assert found["step"] == [(1, 2e-3), (10, 2e-3), (100, 2e-3)]
    assert "callbacks 1,000, tensorpack: does not run: No memory" in capsys.readouterr().out


def test_the_page_has_a_place_for_the_table():
    assert "table" in run.insert(growth.PAGE.read_text(encoding="utf-8"), "table")
