"""The flow that is named on the command line is found, or a line says why it is not."""

import re
import sys

import pytest

from tests.dataflow._cli.files import facts
from tests.dataflow._cli.flows import HERE, Closed

pytest.importorskip("msgpack")


@pytest.mark.parametrize("name", ["twenty", "make_twenty", "Namespace.flow", "Closed"])
def test_a_flow_of_a_module(run, name):
    ran = run("bench", f"{HERE}:{name}", "--warmup", "0", "--size", "50")
    assert ran.code == 0
    assert facts(ran.out)["measured"].startswith("50 datapoints in 3 passes")
    assert facts(ran.out)["length of a pass"] == "20"


def test_a_flow_of_a_file(run, write):
    write("count = 7\n", "beside.py")
    path = write(
        "import beside\n"
        "from tensorpack.dataflow import DataFromList\n"
        "print('printed by the file')\n"
        "flow = DataFromList([[i] for i in range(beside.count)])\n"
    )
    before = list(sys.path)
    try:
        for _ in range(2):  # it is run anew each time
            ran = run("bench", f"{path}:flow", "--warmup", "0", "--size", "14")
            assert ran.code == 0
            assert facts(ran.out)["measured"].startswith("14 datapoints in 2 passes")
            assert "printed" in ran.err and "printed" not in ran.out
    finally:
        sys.modules.pop("beside", None)
    assert sys.path == before and "userflow" not in sys.modules


def test_the_flow_is_closed_also_after_an_error(run):
    before = Closed.closed
    assert run("bench", f"{HERE}:Closed", "--size", "9").code == 0
    assert run("bench", f"{HERE}:ClosedAndEmpty").code == 1
    assert Closed.closed == before + 2


@pytest.mark.parametrize(
    "name, words",
    [
        ("no_such_name", "has no 'no_such_name'. It has .*twenty, make_twenty, "),
        ("Namespace.other", "has no 'Namespace.other'"),
        ("HERE", "does not give a DataFlow but a str"),
        ("make_list", "does not give a DataFlow but a list. Wrap a list in DataFromList"),
        ("needs_an_argument", "missing 1 required .*path"),
        ("make_empty", "nothing to measure: DataFromList gave 0 datapoints"),
    ],
)
def test_names_that_are_not_flows(fails, name, words):
    assert re.search(words, fails("bench", f"{HERE}:{name}"))


@pytest.mark.parametrize(
    "text, words",
    [
        ("raise ZeroDivisionError('of mine')", r"ZeroDivisionError: of mine \(.*userflow.py, line"),
        ("import sys; sys.exit(3)", "ended the program with code 3"),
        ("import no_such_module_anywhere", r"No module named 'no_such_module_anywhere' \("),
        ("a flow", r"SyntaxError: .*userflow.py, line 1"),
        ("flow = 5", "does not give a DataFlow but a int"),
        ("def flow():\n    raise SystemExit('done')", "ended the program with code 'done'"),
    ],
)
def test_files_that_go_wrong(fails, write, text, words):
    before = list(sys.path)
    message = fails("bench", f"{write(text)}:flow")
    assert re.search(words, message), message
    assert sys.path == before and "userflow" not in sys.modules


def test_places_that_are_not_there(fails, write):
    assert "There is no file no/such.py (seen from" in fails("bench", "no/such.py:flow")
    for source in "no_such.part", "./data", "../data", ".data", "no/data":
        message = fails("bench", f"{source}:flow")
        assert f"There is no module {source} (seen from" in message and "Give the path" in message
    for name in "json.py", "my.flow.py":
        assert "is the name of another one, or not" in fails("bench", f"{write('', name)}:flow")


def test_an_error_while_it_is_measured(fails):
    message = fails("bench", f"{HERE}:make_broken")
    assert re.search(r"error: ZeroDivisionError: by the user \(.*flows.py, line \d+\)", message)
    assert message.endswith("--traceback shows more.")
    message = fails("bench", f"{HERE}:make_broken", "--processes", "1")
    assert "ZeroDivisionError: by the user (in a worker process)" in message
