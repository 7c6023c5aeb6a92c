"""Writes down what became of each row of the fault matrix in a run of pytest.

With TENSORPACK_FAULT_REPORT=FILE, the tests that are marked `fault_row(number, ...)` are entered in
a file of JSON: {"tensorflow": version, "tests": {node id: {"rows", "outcome", "date"}}}. What is
in the file already stays, but for the tests that ran again, so that parts can be run one by one.
`scripts/reliability` makes a table of such files.
"""

import datetime
import json
import os
import sys

import pytest

__all__ = ["FaultReport"]

_WORST_LAST = ("passed", "skipped", "failed")


class FaultReport:
    """A plugin of pytest that enters the outcomes of marked tests in a file.

    Args:
      path: of the file; made if it is not there.
    """

    def __init__(self, path):
        self._path = os.path.abspath(path)
        self._tests = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        """Notes the worst outcome of the three phases of a test."""
        result = (yield).get_result()
        rows = sorted({row for mark in item.iter_markers("fault_row") for row in mark.args})
        if not rows:
            return
        today = datetime.date.today().isoformat()
        entry = {"rows": rows, "outcome": result.outcome, "date": today}
        if result.outcome == "skipped":
            entry["reason"] = _reason(result.longrepr)
        before = self._tests.get(item.nodeid, entry)
        if _WORST_LAST.index(entry["outcome"]) >= _WORST_LAST.index(before["outcome"]):
            self._tests[item.nodeid] = entry

    def pytest_sessionfinish(self):
        """Writes the file."""
        if not self._tests:
            return
        version = _tensorflow_version()
        tests = {}
        if os.path.exists(self._path):
            with open(self._path, encoding="utf-8") as file:
                known = json.load(file)
            if known["tensorflow"] != version:
                raise pytest.UsageError(
                    f"{self._path} is of TensorFlow {known['tensorflow']}, this is {version}: "
                    "set TENSORPACK_FAULT_REPORT to another file, or delete it."
                )
            tests = known["tests"]
        tests.update(self._tests)
        text = json.dumps({"tensorflow": version, "tests": tests}, indent=1, sort_keys=True)
        with open(self._path, "w", encoding="utf-8") as file:
            file.write(text + "\n")


def _reason(longrepr):
    """The reason of a skipped test, which pytest gives as (file, line, reason)."""
    text = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return text[len("Skipped: ") :] if text.startswith("Skipped: ") else text


def _tensorflow_version():
    tensorflow = sys.modules.get("tensorflow")
    return "none" if tensorflow is None else tensorflow.__version__
