"""Results: targets, the table of docs/performance.md, and the chart."""

import json

from _chart import ratios
from _programs import RETURNED, returned
from _report import Row, markdown
from run import start

ROWS = [
    Row("step", 13.456, "us", "<= 20", {"trainer": 38.0, "bare": 24.5}, "us"),
    Row("rate", 212670.4, "dp/s", ">= 300000", {"ours": 212670.4}, "dp/s"),
    Row("no | target", 1.0, "", "", {"ours": 1.0, "bare": 1.0}, "it/s"),
]


def results(machine="M", date="2026-11-21", **runs):
    runs = {
        name: {"date": date, "rows": [row._asdict() for row in rows]} for name, rows in runs.items()
    }
    return {"machine": machine, "versions": {".venv": "Python 3.11.7"}, "runs": runs}


def test_what_a_process_returns_is_read_from_among_other_lines():
    text = f"a table\n{RETURNED}none\n{RETURNED}{json.dumps([ROWS[0]._asdict()])}\n"
    assert [Row(**fields) for fields in returned(text)] == ROWS[:1]


def test_a_line_of_the_table_for_each_row_with_its_target():
    assert markdown(results(R7=ROWS[:1], R5=ROWS)).splitlines() == [
        "M; 2026-11-21.",
        "",
        "Python 3.11.7.",
        "",
        "| # | figure | measured | target | held against (medians) |",
        "|---|---|---|---|---|",
        "| R5 | step, TF 2 | 13.5 us | <= 20: yes | trainer 38, bare 24.5 us |",
        "| R5 | rate, TF 2 | 212,670 dp/s | >= 300000: **no** |  |",
        "| R5 | no \\| target, TF 2 | 1 |  | ours 1, bare 1 it/s |",
        "| R7 | step | 13.5 us | <= 20: yes | trainer 38, bare 24.5 us |",
    ]


def test_results_are_added_to_those_of_the_same_machine():
    kept, empty = results(R5=ROWS), {"machine": "N", "versions": {}, "runs": {}}
    assert start(kept, "M", False) is kept
    assert start(kept, "N", False) == start(results("N", R5=ROWS), "N", True) == empty


def test_rows_of_another_day_have_its_date():
    kept = results(R5=ROWS, R6=ROWS, R7=ROWS)
    kept["runs"]["R6"]["date"] = "2026-11-22"
    assert markdown(kept).startswith("M; 2026-11-21, R6 2026-11-22.\n")


def test_the_chart_has_the_ratios_and_turns_those_of_times_around():
    sides = {"ours": 1.0, "bare": 1.0}
    rows = [
        Row("step / bare loop, 1 core", 0.5, "", "<= 1.15", sides, "us"),
        Row("step / the better peer", 3.0, "", "", sides, "it/s"),
        Row("two / 1", 2.0, "", "", sides, "it/s"),
        Row("step over bare", 4.0, "us", "", sides, "us"),
    ]
    bare, others = ratios(results(R6=rows))
    assert bare == {"R6 queue step / bare loop": [2.0]}
    assert others == {"R6 queue step / the better peer": [3.0]}
