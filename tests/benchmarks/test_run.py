"""The runs of `make bench`: each has its function and its peers, and the page has the results."""

import json
import re
import subprocess
import sys

import run
from _chart import draw
from _programs import returned
from _report import insert, markdown
from figures import FIGURES
from run import HERE


def test_every_peer_has_its_list_of_pinned_packages():
    lists = {path.stem: path for path in (HERE / "peers").glob("*.txt")}
    assert set(lists) == {peer for figure in FIGURES.values() for peer in figure.peers}
    for path in lists.values():
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line[0] != "#"]
        assert [line for line in lines if "==" not in line and "<" not in line] == []


def test_every_command_in_the_documents_is_a_figure():
    pages = [*(HERE.parent / "docs").glob("*.md"), HERE / "README.md"]
    text = "".join(path.read_text(encoding="utf-8") for path in pages)
    named = set(re.findall(r"benchmarks/run\.py (\w+)", text))
    assert named and named <= set(FIGURES)
    scripts = set(re.findall(r"benchmarks/([\w/]+\.py)", text))
    assert [name for name in scripts if not (HERE / name).is_file()] == []


def test_the_page_has_the_results_and_the_reason_of_each_missed_target():
    results = json.loads(run.RESULTS.read_text(encoding="utf-8"))
    assert set(results["runs"]) <= set(FIGURES)
    page = run.PAGE.read_text(encoding="utf-8")
    assert insert(page, markdown(results)) == page
    assert draw(results) == run.CHART.read_text(encoding="utf-8")
    missed = set(re.findall(r"^\| (\w+) \|.*: \*\*no\*\*", page, re.MULTILINE))
    reasons = {each.partition("**")[0] for each in page.split("\n- **") if "*No*" in each}
    assert missed == reasons


def test_one_figure_runs_as_a_command():
    command = [sys.executable, str(HERE / "run.py"), "R9", "--pairs", "1"]
    text = subprocess.check_output(command, universal_newlines=True)
    (row,) = returned(text)
    assert (row["unit"], row["target"]) == ("ms", "<= 50")
    assert list(row["medians"]) == ["import", "interpreter"]
