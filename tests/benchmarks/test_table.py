"""The table of docs/performance.md: its rows, what is kept of it, where it goes."""

import pytest
from _report import Measured
from _table import BEGIN, END, insert, markdown, merge

from tests.checks import ROOT

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


def table(**jobs):
    return markdown({"machine": "M", "jobs": jobs}, ["first", "second", "third"])


def test_a_row_for_each_figure_with_its_target_and_whether_it_is_met():
    assert table(first=OK).splitlines()[-3:] == [
        "| R5 | step, TF 2 | <= 20 us | 13.5 us | bare 25 us | yes | 2026-11-21 |",
        "| R5 | rate (prototype), TF 2 | >= 300000 dp/s | 212,670 dp/s |  | **no** | 2026-11-21 |",
        "| R5 | no target, TF 2 |  | 1 |  | - | 2026-11-21 |",
    ]


def test_a_script_that_failed_has_a_row_that_says_so():
    assert table(first=FAILED).splitlines()[-1] == (
        "| R7 | sampling \\| all, TF 2 |  | failed with exit code 1 |  | - | 2026-11-21 |"
    )


def test_rows_are_in_the_order_of_the_jobs_not_of_the_measuring():
    figures = [line[2:4] for line in table(third=FAILED, first=OK).splitlines()[-4:]]
    assert figures == ["R5", "R5", "R5", "R7"]


def test_machine_and_versions_are_named_once():
    lines = table(first=OK, second=FAILED).splitlines()
    assert lines[:4] == ["Machine: M.", "", "- .venv: Python 3.11.7", ""]


def test_new_results_take_the_place_of_old_ones():
    old = {"machine": "M", "jobs": {"a": OK, "b": OK}}
    merged = merge(old, {"machine": "M", "jobs": {"b": FAILED}})
    assert merged == {"machine": "M", "jobs": {"a": OK, "b": FAILED}}
    assert old["jobs"] == {"a": OK, "b": OK}


def test_what_was_not_measured_now_does_not_take_the_place_of_what_was():
    lacking = dict(OK, status="not measured: run make bench-peers", rows=[])
    merged = merge({"machine": "M", "jobs": {"a": OK}}, {"machine": "M", "jobs": {"a": lacking}})
    assert merged["jobs"] == {"a": OK}
    assert merge({}, {"machine": "M", "jobs": {"a": lacking}})["jobs"] == {"a": lacking}


def test_results_of_another_machine_are_not_kept():
    new = {"machine": "M", "jobs": {"b": OK}}
    assert merge({"machine": "N", "jobs": {"a": OK}}, new) == new
    assert merge({}, new) == new


def test_only_what_is_between_the_markers_changes():
    page = f"before\n\n{BEGIN}\n\nold\n\n{END}\n\nafter\n"
    assert insert(page, "new | table") == f"before\n\n{BEGIN}\n\nnew | table\n\n{END}\n\nafter\n"
    assert insert(insert(page, "x"), "y") == insert(page, "y")


@pytest.mark.parametrize(
    "page", ["", BEGIN, END, END + BEGIN, BEGIN + BEGIN + END, BEGIN + END + END, END + BEGIN + END]
)
def test_a_page_without_both_markers_is_refused(page):
    with pytest.raises(ValueError, match="once each"):
        insert(page, "new")


def test_the_page_has_the_markers():
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert "new table" in insert(page, "new table")
