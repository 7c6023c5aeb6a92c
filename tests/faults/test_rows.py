"""Every row of the fault matrix in docs/reliability.md has a test, and every marked test a row."""

import ast
import re

from tests.harness import ROOT

from . import test_matrix

ROW = re.compile(r"\| (\d+) \| ([^|]+) \| [^|]+ \|")
WITHDRAWN = [48, 56]


def table():
    """Row numbers of the document, with what it says happens."""
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = [match.groups() for match in map(ROW.fullmatch, text.splitlines()) if match]
    return {int(number): event for number, event in rows}


def marked_rows():
    """The rows that tests are marked with: as numbers, or by the cases of their tables."""
    rows = {case.row for case in test_matrix.TABLE}
    for path in (ROOT / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "fault_row":
                rows.update(filter(None, map(number_of, node.args)))
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Case":
                named = [each.value for each in node.keywords if each.arg == "row"]
                rows.update(filter(None, map(number_of, named or node.args[:1])))
    return rows - {0}  # for cases that belong to no row


def number_of(node):
    """The value of a literal; None for anything else."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def test_the_table_has_all_rows():
    rows = table()
    assert sorted(rows) == list(range(1, 62))
    assert [number for number, event in sorted(rows.items()) if event == "withdrawn"] == WITHDRAWN


def test_rows_and_marks_agree():
    assert marked_rows() == set(table()) - set(WITHDRAWN)
