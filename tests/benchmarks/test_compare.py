"""Comparing two checkouts: pairs that alternate, and a ratio above 1 where this one is faster."""

import sys
from pathlib import Path

import compare
import pytest
from _report import Measured

from tests.checks import ROOT

OTHER = Path("/other")


@pytest.mark.parametrize("unit, speed", [("it/s", "0.500"), ("us", "2.000")])
def test_pairs_alternate_and_speed_is_that_of_this_checkout(unit, speed, capsys):
    tape = []

    def measure(checkout, name):
        tape.append("other" if checkout == OTHER else "this")
        return [Measured(name, "a step", {"other": 4.0, "this": 2.0}[tape[-1]], unit)]

    (row,) = compare.compare("R5", OTHER, 2, measure)
    assert tape == ["other", "this", "this", "other"]
    assert row == f"| R5 | a step, {unit} | 4 | 2 | {speed} | {speed} - {speed} |"
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith(f"R5 pair 2/2: baseline 4, this 2, speed {speed} (a step")


@pytest.mark.parametrize(
    "unit, target, higher",
    [("", ">= 0.95", True), ("", "<= 1.15", False), ("MB/s", "", True), ("MB", "", False)],
)
def test_whether_higher_is_better(unit, target, higher):
    assert compare.is_higher_better(Measured("R1", "", 1.0, unit, target)) is higher


def test_a_process_imports_the_library_of_the_checkout(tmp_path):
    (tmp_path / "tensorpack").mkdir()
    (tmp_path / "tensorpack" / "__init__.py").write_text("import sys; sys.exit('the other one')\n")
    with pytest.raises(RuntimeError, match="the other one"):
        compare.measure(tmp_path, "R9")


@pytest.mark.parametrize("flags", [["--nonsense"], ["--pairs", "0"]])
def test_a_figure_without_a_result_is_an_error(flags):
    with pytest.raises(RuntimeError, match="ended with"):
        compare.measure(ROOT, "R9", flags)


@pytest.mark.parametrize("flags", [["--baseline", str(ROOT)], ["--baseline", "/", "--only", "R5"]])
def test_a_baseline_is_another_checkout(flags, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["compare.py", *flags])
    with pytest.raises(SystemExit) as exit:
        compare.main()
    assert exit.value.code == 2
    assert "no other checkout" in capsys.readouterr().err
