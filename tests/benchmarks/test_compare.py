"""Comparing two checkouts: pairs that alternate, and a ratio above 1 where this one is faster."""

from pathlib import Path

import compare
import pytest

OTHER = Path("/other")


@pytest.mark.parametrize("unit, speed", [("it/s", "0.500"), ("us", "2.000")])
def test_pairs_alternate_and_speed_is_that_of_this_checkout(unit, speed, capsys):
    tape = []

    def measure(checkout, name):
        tape.append("other" if checkout == OTHER else "this")
        return {f"a step, {unit}": {"other": 4.0, "this": 2.0}[tape[-1]]}

    (row,) = compare.compare("R5", OTHER, 2, measure)
    assert tape == ["other", "this", "this", "other"]
    assert row == f"| R5 | a step, {unit} | 4 | 2 | {speed} | {speed} - {speed} |\n"
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith(f"R5 pair 2/2: baseline 4, this 2, speed {speed} (a step")


def test_a_process_imports_the_library_of_the_checkout(tmp_path):
    (tmp_path / "tensorpack").mkdir()
    (tmp_path / "tensorpack" / "__init__.py").write_text("import sys; sys.exit('the other one')\n")
    with pytest.raises(RuntimeError, match="the other one"):
        compare.measure(tmp_path, "R9")
