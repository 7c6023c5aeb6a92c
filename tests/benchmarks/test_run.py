"""The runs of `make bench`: each has its function and peers, and becomes a result."""

import ast
import json
import re
import subprocess
import sys

import pytest
import run
from figures import FIGURES, Figure, Run
from run import HERE, RUNS, chosen

PRINTS = """
import json
print("a table")
print('RESULT {"figure": "R5", "what": "step", "value": 2.0}')
"""


@pytest.fixture
def run_code(tmp_path, monkeypatch):
    """Runs a program as a figure."""
    monkeypatch.setattr(run, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(run, "versions_of", lambda environment: "1.0")

    def run_code(code):
        monkeypatch.setattr(run, "command_of", lambda *args: [sys.executable, "-c", code])
        return run.run("R5", quick=False)

    return run_code


def test_every_peer_has_its_list_of_pinned_packages():
    lists = {path.stem: path for path in (HERE / "peers").glob("*.txt")}
    assert set(lists) == {peer for figure in FIGURES.values() for peer in figure.peers}
    for path in lists.values():
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line[0] != "#"]
        assert [line for line in lines if "==" not in line and "<" not in line] == []


def functions():
    for name, figure in FIGURES.items():
        module, _, function = figure.function.partition(".")
        tree = ast.parse((HERE / f"{module}.py").read_text(encoding="utf-8"))
        yield (
            name,
            module,
            {each.name: each for each in tree.body if hasattr(each, "name")},
            function,
        )


def test_every_figure_has_a_function_that_says_what_it_measures():
    numbers = {int(name[1:]) for name in FIGURES if name[0] == "R"}
    assert numbers == {*range(1, 14), 15, *range(17, 21)}
    for _, _, found, function in functions():
        assert ast.get_docstring(found[function])


def test_the_flags_of_a_run_are_those_of_its_figure():
    for name, _, found, function in functions():
        taken = {each.arg for each in found[function].args.args} | {"pairs"}
        given = [
            *FIGURES[name].quick,
            *(flag for each in FIGURES[name].runs for flag in each.flags),
        ]
        flags = {flag[2:].replace("-", "_") for flag in given if flag.startswith("--")}
        assert flags <= taken or "flags" in taken, name


def test_every_command_in_the_documents_is_a_figure():
    pages = [*(HERE.parent / "docs").glob("*.md"), HERE / "README.md"]
    text = "".join(path.read_text(encoding="utf-8") for path in pages)
    named = set(re.findall(r"benchmarks/run\.py (\w+)", text))
    assert named and named <= set(FIGURES)
    scripts = set(re.findall(r"benchmarks/([\w/]+\.py)", text))
    assert [name for name in scripts if not (HERE / name).is_file()] == []


def test_a_figure_is_all_of_its_runs():
    assert chosen("r9,R5") == ["R5", "R5-tf1", "R9"]
    assert chosen("list") == ["list"]
    assert chosen(None) == list(RUNS)
    with pytest.raises(SystemExit, match="R99"):
        chosen("R1,R99")


def test_a_result_has_its_rows_and_keeps_what_was_printed(run_code):
    done = run_code(PRINTS)
    assert done["status"] == "ok"
    assert [(row["what"], row["value"]) for row in done["rows"]] == [("step", 2.0)]
    assert done["versions"] == {".venv": "1.0"}
    assert json.loads(json.dumps(done)) == done
    assert "a table" in (run.LOGS / "R5.txt").read_text(encoding="utf-8")


def test_a_figure_that_fails_is_known_by_its_exit_code(run_code):
    assert run_code(PRINTS + "raise SystemExit(3)")["status"] == "failed with exit code 3"
    assert run_code("print('nothing')")["status"] == "failed: it printed no result"


def test_a_figure_that_hangs_is_killed_with_its_children(tmp_path):
    code = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print('begun', flush=True)\n"
        "time.sleep(600)\n"
    )
    # the child has the same standard output: reading it ends only when both are gone
    text, status = run._output([sys.executable, "-c", code], limit=2)
    assert (text, status) == ("begun\n", "failed: not ready after 0 min")


def test_what_needs_a_peer_that_is_not_installed_is_left_out(monkeypatch, capsys):
    figure = Figure("dqn.against_sb3", "a peer", 1.0, peers=("nobody",))
    monkeypatch.setitem(FIGURES, "R3", figure)
    monkeypatch.setitem(RUNS, "R3", ("R3", Run()))
    done = run.run_all(["R3"], quick=True)["R3"]
    assert (done["status"], done["rows"]) == ("not measured: run make bench-peers", [])
    out, err = capsys.readouterr()
    assert "not measured: run make bench-peers" in out
    assert "warning: R3 is not measured" in err


def test_versions_are_those_of_the_environment():
    assert run.versions_of(".venv").startswith(f"Python {sys.version.split()[0]}, ")
    assert "numpy " in run.versions_of(".venv")


def test_one_figure_runs_as_a_command():
    command = [sys.executable, str(HERE / "run.py"), "R9", "--pairs", "1"]
    text = subprocess.check_output(command, universal_newlines=True)
    (row,) = run.parse(text)
    assert (row.figure, row.unit, row.target) == ("R9", "ms", "<= 50")
    assert row.peer.startswith("import ")
