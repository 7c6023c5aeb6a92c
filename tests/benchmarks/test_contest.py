"""Sides take turns, and the result is the median of the rounds."""

from _contest import Contest, difference, measure


def source(tape, name, values):
    values = iter(values)

    def side():
        tape.append(name)
        return next(values)

    return side


def test_sides_alternate_and_the_ratio_is_the_median_of_the_rounds(capsys):
    tape = []
    sides = {"a": source(tape, "a", [1.0, 9.0, 4.0]), "b": source(tape, "b", [2.0, 3.0, 1.0])}
    # the ratio of the medians would be 4 / 2
    (row,) = measure((each for each in [Contest("x / b", sides, target=">= 2")]), 3)
    assert row == ("x / b", 3.0, "", ">= 2", {"a": 4.0, "b": 2.0}, "it/s")
    assert tape == ["a", "b"] * 3
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" (load")[0] for line in lines] == [
        "x / b, 0: a 1, b 2 it/s: 0.500",
        "x / b, 1: a 9, b 3 it/s: 3.000",
        "x / b, 2: a 4, b 1 it/s: 4.000",
    ]


def test_numbers_of_an_earlier_row_make_another_and_peers_are_left_out():
    def contests():
        columns = yield Contest("x / the best", {"ours": lambda: 6.0}, {"peer": lambda: 3.0})
        yield Contest("x over 2", {**columns, "bare": [2.0, 2.0]}, unit="us", judge=difference)

    rows = measure(contests(), 2)
    assert [(row.value, row.unit) for row in rows] == [(2.0, ""), (1.0, "us")]
    rows = measure(contests(), 2, alone=True)
    assert [(row.value, row.unit) for row in rows] == [(6.0, "it/s"), (4.0, "us")]
