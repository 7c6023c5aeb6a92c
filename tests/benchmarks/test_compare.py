"""Comparing two checkouts: pairs that alternate, and a ratio above 1 where this one is faster."""

import sys
from pathlib import Path

import compare
import pytest

from tests.checks import ROOT

OTHER = Path("/other")


@pytest.mark.parametrize("higher, speed", [(True, "0.500"), (False, "2.000")])
def test_pairs_alternate_and_speed_is_that_of_this_checkout(higher, speed, capsys):
    tape = []

    def measure(checkout, figure):
        tape.append("other" if checkout == OTHER else "this")
        return {"other": 4.0, "this": 2.0}[tape[-1]]

    figure = compare.Figure("a step, us", ("step.py",), higher)
    row = compare.compare("R5", figure, OTHER, 2, measure)
    assert tape == ["other", "this", "this", "other"]
    assert row == f"| R5 | a step, us | 4 | 2 | {speed} | {speed} - {speed} |"
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith(f"R5 pair 2/2: baseline 4, this 2, speed {speed} (")


def test_a_process_imports_its_own_checkout(tmp_path):
    for name in ["benchmarks", "tensorpack"]:
        (tmp_path / name).mkdir()
    (tmp_path / "tensorpack" / "__init__.py").write_text("RATE = 7.5\n")
    code = "import tensorpack; print('updates/s:', tensorpack.RATE)"
    assert compare.measure(tmp_path, compare.Figure("", ("-c", code), True)) == 7.5


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "print('no figure')"])
def test_a_script_without_a_figure_is_an_error(code):
    with pytest.raises(RuntimeError, match="ended with"):
        compare.measure(ROOT, compare.Figure("", ("-c", code), True))


def test_every_command_is_there():
    for figure in compare.FIGURES.values():
        assert figure.command[0] == "-c" or (ROOT / "benchmarks" / figure.command[0]).is_file()


@pytest.mark.parametrize("flags", [["--baseline", str(ROOT)], ["--baseline", "/", "--only", "R5"]])
def test_a_baseline_is_another_checkout(flags, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["compare.py", *flags])
    with pytest.raises(SystemExit) as exit:
        compare.main()
    assert exit.value.code == 2
    assert "no other checkout" in capsys.readouterr().err
