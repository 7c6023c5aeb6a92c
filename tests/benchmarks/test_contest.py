"""Sides take turns, and the result is the median of the rounds."""

from _contest import Contest, results


def source(tape, name, values):
    values = iter(values)

    def measure():
        tape.append(name)
        return next(values)

    return measure


def test_sides_alternate_and_the_ratio_is_the_median_of_the_rounds(capsys):
    tape = []
    sides = {"a": source(tape, "a", [1.0, 9.0, 4.0]), "b": source(tape, "b", [2.0, 3.0, 1.0])}
    # the ratio of the medians would be 4 / 2
    (row,) = results("R1", (each for each in [Contest("x / b", sides, target=">= 2")]), 3)
    assert (row.figure, row.value, row.unit, row.target) == ("R1", 3.0, "", ">= 2")
    assert row.peer == "a 4 it/s, b 2 it/s"
    assert tape == ["a", "b"] * 3
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" (load")[0] for line in lines] == [
        "x / b, 0: a 1 it/s, b 2 it/s: 0.500",
        "x / b, 1: a 9 it/s, b 3 it/s: 3.000",
        "x / b, 2: a 4 it/s, b 1 it/s: 4.000",
    ]
