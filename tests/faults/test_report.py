"""The report of the fault matrix, and the table that is made of it."""

import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys

import pytest

from tests.harness import ROOT

from .rows import ROWS

TESTS = """
import pytest

@pytest.mark.fault_row(6, 8)
@pytest.mark.parametrize("good", [True, False])
def test_one(good):
    assert good

@pytest.mark.fault_row(6)
def test_two():
    pytest.skip("no disk")

def test_unmarked():
    pass

@pytest.fixture
def broken():
    yield
    raise OSError

@pytest.mark.fault_row(9)
def test_teardown(broken):
    pass
"""


def run_pytest(folder, *arguments):
    """Runs the tests above with the plugin; returns what the report says."""
    (folder / "test_rows.py").write_text(TESTS)
    (folder / "conftest.py").write_text(
        "from tests.faults.report import FaultReport\n"
        "def pytest_configure(config):\n"
        "    config.addinivalue_line('markers', 'fault_row(row, ...): a row')\n"
        "    config.pluginmanager.register(FaultReport('report.json'))\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environ = dict(os.environ, PYTHONPATH=str(ROOT))
    output = subprocess.PIPE
    subprocess.run(command, cwd=str(folder), env=environ, stdout=output, stderr=output)
    return json.loads((folder / "report.json").read_text())


def test_outcomes_are_entered_and_those_of_parts_add_up(tmp_path):
    report = run_pytest(tmp_path, "-k", "one")
    assert report["tensorflow"] == "none"
    assert {name[-5:]: each["outcome"] for name, each in report["tests"].items()} == {
        "True]": "passed",
        "alse]": "failed",
    }
    assert all(each["rows"] == [6, 8] for each in report["tests"].values())
    report = run_pytest(tmp_path, "-k", "not one")
    assert len(report["tests"]) == 4
    assert report["tests"]["test_rows.py::test_two"]["reason"] == "no disk"
    assert report["tests"]["test_rows.py::test_teardown"]["outcome"] == "failed"


@pytest.fixture
def script(tmp_path, monkeypatch):
    """The script as a module, on a document of its own."""
    loader = importlib.machinery.SourceFileLoader(
        "reliability", str(ROOT / "scripts" / "reliability")
    )
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("reliability", loader))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    module.DOCUMENT, module.REPORTS = tmp_path / "page.md", tmp_path / "reports"
    module.DOCUMENT.write_text("before\n<!-- begin faults -->\nold\n<!-- end faults -->\nafter\n")
    return module


def report_of(version, **tests):
    """A report: names of tests to (row, outcome)."""
    entries = {
        name: {"rows": [row], "outcome": outcome, "date": "2026-01-02", "reason": "no disk"}
        for name, (row, outcome) in tests.items()
    }
    return {"tensorflow": version, "tests": entries}


@pytest.mark.parametrize(
    "outcomes, expected",
    [
        (["passed", "passed"], "2 passed"),
        (["passed", "skipped"], "1 passed, 1 skipped: no disk"),
        (["skipped"], "unproven: no disk"),
        (["passed", "failed"], "**1 failed**, 1 passed"),
        ([], "unproven: no test was run"),
    ],
)
def test_the_result_of_a_row(outcomes, expected, script):
    tests = {f"test_{i}": (6, outcome) for i, outcome in enumerate(outcomes)}
    assert script.result(6, report_of("2.0", other=(7, "failed"), **tests)) == expected


def test_a_row_that_cannot_be_tested_says_why(script):
    assert script.result(29, report_of("2.0")) == f"unproven: {ROWS[29].open}"


def test_the_table_has_a_column_for_each_report_and_is_checked(script, tmp_path, capsys):
    paths = []
    for version in ("1.15.5", "2.21.0"):
        every = {f"test_{n}": (n, "passed") for n, row in ROWS.items() if not row.open}
        paths.append(tmp_path / version)
        paths[-1].write_text(json.dumps(report_of(version, **every)))
    assert script.main(["--check"]) == 1  # there is no report
    assert script.main([str(path) for path in paths]) == 0
    lines = script.DOCUMENT.read_text().splitlines()
    assert (lines[0], lines[-1]) == ("before", "after") and "old" not in lines
    (head,) = [line for line in lines if line.startswith("| row |")]
    assert head.endswith("| TensorFlow 2.21.0 | TensorFlow 1.15.5 |")
    assert sum(line.endswith("| 1 passed | 1 passed |") for line in lines) == sum(
        not row.open for row in ROWS.values()
    )
    assert script.main(["--check"]) == 0
    path = script.REPORTS / "tensorflow-1.15.5.json"
    path.write_text(path.read_text().replace("passed", "skipped", 1))
    assert script.main(["--check"]) == 1
    assert "docs/reliability.md has another table" in capsys.readouterr().out


def test_all_rows_are_there():
    assert sorted(ROWS) == list(range(1, 46))
    assert all("|" not in row.fault + row.outcome + row.open for row in ROWS.values())
