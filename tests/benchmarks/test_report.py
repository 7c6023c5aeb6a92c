"""Results: the printed line, targets, and the table of docs/performance.md."""

import pytest
from _report import Measured, insert, is_met, markdown, merge, parse, report

from tests.checks import ROOT

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
    ],
}
FAILED = dict(OK, figure="R7", title="sampling | all", status="failed with exit code 1", rows=[])


def test_what_is_reported_is_read_back_from_among_other_lines(capsys):
    print("a table\nRESULTS follow")  # noqa: T201
    report(FIGURE, Measured("R1", "a ratio", 0.5))
    print("the end")  # noqa: T201
    assert parse(capsys.readouterr().out) == [FIGURE, Measured("R1", "a ratio", 0.5)]


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


def table(**jobs):
    return markdown({"machine": "M", "jobs": jobs}, ["first", "second", "third"])


def test_a_row_for_each_figure_with_its_target_and_for_a_script_that_failed():
    assert table(second=FAILED, first=OK).splitlines()[-4:] == [
        "| R5 | step, TF 2 | <= 20 us | 13.5 us | bare 25 us | yes | 2026-11-21 |",
        "| R5 | rate (prototype), TF 2 | >= 300000 dp/s | 212,670 dp/s |  | **no** | 2026-11-21 |",
        "| R5 | no target, TF 2 |  | 1 |  | - | 2026-11-21 |",
        "| R7 | sampling \\| all, TF 2 |  | failed with exit code 1 |  | - | 2026-11-21 |",
    ]


LACKING = dict(OK, status="not measured: run make bench-peers", rows=[])


@pytest.mark.parametrize(
    "machine, old, new, merged",
    [
        ("M", {"a": OK, "b": OK}, {"b": FAILED}, {"a": OK, "b": FAILED}),
        ("M", {"a": OK}, {"a": LACKING}, {"a": OK}),  # not measured now
        ("M", {}, {"a": LACKING}, {"a": LACKING}),
        ("N", {"a": OK}, {"b": OK}, {"b": OK}),  # another machine
    ],
)
def test_new_results_take_the_place_of_old_ones_of_this_machine(machine, old, new, merged):
    found = merge({"machine": machine, "jobs": old}, {"machine": "M", "jobs": new})
    assert found == {"machine": "M", "jobs": merged}
    assert merge({}, found) == found


def test_the_page_has_the_markers():
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert "new table" in insert(page, "new table")
