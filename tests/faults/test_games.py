"""Rows 36 and 37 of the matrix: ROMs that are none, and games that break or hang."""

import re
from pathlib import Path

import pytest

from tests.examples.conftest import EXAMPLE
from tests.harness import Child
from tests.RL.players import breakout_rom

from .run_case import INT, Case, params

MODULE = "tests.faults.cases_environment"


def content(kind):
    if kind == "damaged":
        whole = Path(breakout_rom()).read_bytes()
        return whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]
    return b""


ADVICE = {
    "missing": "Give the path of a file",
    "empty": "Use the file that comes with ale-py",
    "damaged": "Use the file that comes with ale-py",
    "unreadable": "Input/output error",
}


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.fault_row(36)
@pytest.mark.parametrize("kind", sorted(ADVICE))
def test_a_rom_that_is_none_is_told_before_anything_is_built(kind, tmp_path):
    pytest.importorskip("ale_py")
    rom, log = tmp_path / "breakout.bin", tmp_path / "log"
    if kind == "unreadable":
        rom = "/proc/self/mem"  # a file that even root cannot read from its beginning
    elif kind != "missing":
        rom.write_bytes(content(kind))
    child = Child("-X", "importtime", EXAMPLE / "DQN.py", "--rom", rom, "--logdir", log)
    assert child.end(timeout=20) == 2, child.output
    said = [line for line in child.lines if not line.startswith("import time:")]
    assert f"DQN.py: error: --rom {rom}: " in "".join(said)
    assert str(rom) in said[-1] or ADVICE[kind] in said[-1]
    assert ADVICE[kind] in "".join(said) and "Traceback" not in child.output
    assert "import time:" in child.output
    assert not re.search(r"\| +tensorflow\n", child.output), "TensorFlow was loaded"
    assert not log.exists()


GAMES = [
    Case(
        row=37,
        name=name,
        code=1,
        error="OSError: the game broke",
        says=("in _step",),
        module=MODULE,
    )
    for name in ("game_breaks_in_the_thread", "game_breaks_at_the_start")
] + [
    Case(37, "game_hangs_in_the_thread", 130, (INT,), True, "hangs", 20.0, module=MODULE),
    Case(
        row=37,
        name="game_hangs_at_the_start",
        code=130,
        signals=(INT,) * 3,
        mark="hangs",
        within=1.5,
        says=("third time",),
        module=MODULE,
    ),
]


@pytest.mark.parametrize("case", params(GAMES))
def test_a_game_that_breaks_or_hangs_does_not_hold_the_run(case, run):
    run(case)
