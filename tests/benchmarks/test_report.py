"""Results: the printed line, targets, and the table of docs/performance.md."""

from _chart import ratios
from _report import Measured, markdown, parse, report

FIGURE = Measured("R5", "a step", 13.5, "us", "<= 20", "bare 25 us", "prototype")
OK = {
    "figure": "R5",
    "title": "a step",
    "where": "TF 2",
    "status": "ok",
    "date": "2026-11-21",
    "versions": {".venv": "Python 3.11.7"},
    "rows": [
        Measured("R5", "step", 13.456, "us", "<= 20", "bare 25 us")._asdict(),
        Measured("R5", "rate", 212670.4, "dp/s", ">= 300000", note="prototype")._asdict(),
        Measured("R5", "no target", 1.0)._asdict(),
        Measured("R5", "neither target nor peer", 1.0, "us")._asdict(),
    ],
}
FAILED = dict(OK, figure="R7", title="sampling | all", status="failed with exit code 1", rows=[])


def test_what_is_reported_is_read_back_from_among_other_lines(capsys):
    print("a table\nRESULTS follow")  # noqa: T201
    report(FIGURE, Measured("R1", "a ratio", 0.5))
    print("the end")  # noqa: T201
    assert parse(capsys.readouterr().out) == [FIGURE, Measured("R1", "a ratio", 0.5)]


def table(**jobs):
    return markdown({"machine": "M", "jobs": jobs}, ["first", "second", "third"])


def test_a_row_for_each_figure_with_its_target_and_for_a_script_that_failed():
    assert table(second=FAILED, first=OK).splitlines()[-4:] == [
        "| R5 | step, TF 2 | 13.5 us | <= 20: yes | bare 25 us |",
        "| R5 | rate (prototype), TF 2 | 212,670 dp/s | >= 300000: **no** |  |",
        "| R5 | no target, TF 2 | 1 |  |  |",
        "| R7 | sampling \\| all, TF 2 | failed with exit code 1 |  |  |",
    ]


def test_the_chart_has_the_ratios_and_turns_those_of_times_around():
    rows = [
        Measured("R6", "step / bare loop, 1 core", 0.5, target="<= 1.15")._asdict(),
        Measured("R6", "step / the better peer", 3.0)._asdict(),
        Measured("R6", "two / 1", 2.0)._asdict(),
        Measured("R6", "step over bare", 4.0, "us")._asdict(),
    ]
    bare, others = ratios({"jobs": {"first": dict(OK, rows=rows)}}, ["first"])
    assert bare == {"R6 a step / bare loop": [2.0]}
    assert others == {"R6 a step / the better peer": [3.0]}
