"""The comparison with other frameworks: no empty cell, and each claim of ours has its proof.

A link to a test has the name of the test as its title, without `test_`.
"""

import re

import pytest

from tests.checks import ROOT

PAGE = ROOT / "docs" / "comparison.md"
LINK = re.compile(r"\]\((?P<target>[^)#\s]+)(?:#[^)\s]+)?(?: \"(?P<title>\w+)\")?\)")
CLAIMED = {"feature": 59}  # rows of the tables that begin with this word


def tables():
    """Yields the rows of each table as lists of cells, without the rule under the first."""
    rows = []
    for line in [*PAGE.read_text(encoding="utf-8").splitlines(), ""]:
        if line.startswith("|"):
            rows.append([cell.strip() for cell in line[1:].rstrip()[:-1].split("|")])
        elif rows:
            yield [rows[0], *rows[2:]]
            rows = []


TABLES = list(tables())
CLAIMS = [row for table in TABLES if table[0][0] in CLAIMED for row in table[1:]]


def proofs(cell):
    return [match.groupdict() for match in LINK.finditer(cell)]


def is_proven(cell):
    """Whether a cell is a plain no, or a claim whose links all lead to what they name."""
    if cell == "no":
        return True
    found = proofs(cell)
    return re.match(r"(yes|partly): ", cell) is not None and bool(found) and all(map(exists, found))


def exists(proof):
    path = PAGE.parent / proof["target"]
    if proof["target"].endswith(".py"):
        return path.is_file() and f"def test_{proof['title']}(" in path.read_text(encoding="utf-8")
    return path.exists()


def test_all_rows_are_there():
    rows = {}
    for table in TABLES:
        rows[table[0][0]] = rows.get(table[0][0], 0) + len(table) - 1
    assert {first: rows[first] for first in CLAIMED} == CLAIMED
    assert len({row[0] for row in CLAIMS}) == len(CLAIMS)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table[1][0])
def test_no_cell_is_empty(table):
    assert {len(row) for row in table} == {len(table[0])}
    assert all(cell for row in table for cell in row)


@pytest.mark.parametrize("row", CLAIMS, ids=lambda row: row[0])
def test_our_column_has_proofs(row):
    assert is_proven(row[1])
