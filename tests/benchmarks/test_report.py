"""A result is a line that is read back; targets; pairs."""

import pytest
from _report import PREFIX, Measured, alternate, is_met, parse, report

FIGURE = Measured("R5", "a step", 13.5, "us", "<= 20", "bare 25 us", "prototype")


def test_what_is_reported_is_read_back_from_among_other_lines(capsys):
    print("a table\nRESULTS follow")  # noqa: T201
    report(FIGURE, Measured("R1", "a ratio", 0.5))
    print("the end")  # noqa: T201
    assert parse(capsys.readouterr().out) == [FIGURE, Measured("R1", "a ratio", 0.5)]


def test_a_result_is_one_line_also_if_its_words_are_many(capsys):
    report(Measured("R1", "two\nlines", 1.0))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(PREFIX)


def test_no_result_in_what_was_printed():
    assert parse("nothing\n") == []


@pytest.mark.parametrize(
    "value, target, met",
    [
        (0.95, ">= 0.95", True),
        (0.949, ">= 0.95", False),
        (20.0, "<= 20", True),
        (20.1, "<= 20", False),
        (3.0, "", None),
    ],
)
def test_targets(value, target, met):
    assert is_met(Measured("R1", "", value, target=target)) is met


@pytest.mark.parametrize("target", ["> 3", ">=3", "3", "about 3"])
def test_a_target_that_cannot_be_read_is_refused_where_it_is_reported(target, capsys):
    with pytest.raises(ValueError, match="target|convert"):
        report(Measured("R1", "", 1.0, target=target))
    assert capsys.readouterr().out == ""


def test_pairs_alternate_and_the_ratio_is_the_median_of_the_pairs(capsys):
    tape = []

    def source(name, values):
        values = iter(values)

        def measure():
            tape.append(name)
            return next(values)

        return name, measure

    first, second = source("a", [1.0, 9.0, 4.0]), source("b", [2.0, 3.0, 1.0])
    # the ratio of the medians would be 4 / 2
    assert alternate(first, second, 3) == (4.0, 2.0, 3.0)
    assert tape == ["a", "b"] * 3
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" (load")[0] for line in lines] == [
        "pair 0: a 1 it/s, b 2 it/s, ratio 0.500",
        "pair 1: a 9 it/s, b 3 it/s, ratio 3.000",
        "pair 2: a 4 it/s, b 1 it/s, ratio 4.000",
    ]
