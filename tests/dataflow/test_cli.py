"""`python -m tensorpack.dataflow`: what it prints, what it refuses, and how it exits."""

import contextlib
import gzip
import importlib.util
import os
import pickle
import re
import signal
import struct
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from tensorpack.dataflow import (
    BatchData,
    DataFlow,
    DataFromGenerator,
    DataFromList,
    FakeData,
    HDF5Data,
    HDF5Serializer,
    LMDBSerializer,
    MapData,
    MultiThreadMapData,
    NumpySerializer,
    ProxyDataFlow,
    TFRecordSerializer,
)
from tensorpack.dataflow.__main__ import main
from tensorpack.dataflow._cli.errors import CommandError, told
from tensorpack.dataflow._cli.measure import Limits, measure
from tensorpack.dataflow._cli.output import size_text, structure
from tensorpack.dataflow._cli.stages import chain_of, measure_stages, slowest_stage
from tensorpack.dataflow._crc32c import masked_crc32c
from tensorpack.utils import logger
from tensorpack.utils.serialize import loads
from tests.checks import ROOT
from tests.contracts.dataflow import assert_same
from tests.harness import Child

LONG = 60  # seconds; waited for in full only if the code is wrong
HERE = "tests.dataflow.test_cli"
needs_h5py = pytest.mark.skipif(not importlib.util.find_spec("h5py"), reason="needs h5py")
needs_lmdb = pytest.mark.skipif(not importlib.util.find_spec("lmdb"), reason="needs lmdb")
pytest.importorskip("msgpack")


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys):
    """Runs a command in this process."""

    def run_main(*args):
        capsys.readouterr()  # what the test itself has logged
        code = main([str(each) for each in args])
        return Ran(code, *capsys.readouterr())

    return run_main


@pytest.fixture
def fails(run):
    """Runs a command that is to fail with a message; returns the message."""

    def run_failing(*args):
        ran = run(*args)
        assert ran.code == 1 and "Traceback" not in ran.err
        line = ran.err.splitlines()[-1]
        assert line.startswith(f"python -m tensorpack.dataflow {args[0]}: error: ")
        return line

    return run_failing


@pytest.fixture
def write(tmp_path):
    """Writes a Python file; returns the path of it."""

    def write_file(text, name="userflow.py"):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write_file


def numbers(count):
    return [[i, np.full((2, 3), i, np.float32)] for i in range(count)]


def flow_of(datapoints):
    return DataFromList(datapoints, shuffle=False)


def save(path, datapoints):
    """Writes a file of the format that its name says."""
    path = str(path)
    kinds = {".npz": NumpySerializer, ".tfrecord": TFRecordSerializer, ".lmdb": LMDBSerializer}
    suffix = os.path.splitext(path)[1]
    if suffix == ".h5":
        keys = [f"component_{index}" for index in range(len(datapoints[0]))]
        HDF5Serializer.save(flow_of(datapoints), path, keys)
    else:
        kinds[suffix].save(flow_of(datapoints), path)
    return path


def load(path):
    """The datapoints of a file, in their order."""
    path = str(path)
    suffix = os.path.splitext(path)[1]
    if suffix == ".npz":
        flow = NumpySerializer.load(path, shuffle=False)
    elif suffix == ".tfrecord":
        flow = TFRecordSerializer.load(path)
    elif suffix == ".lmdb":
        flow = LMDBSerializer.load(path, shuffle=False)
    else:
        flow = HDF5Data(path, ["component_0", "component_1"], shuffle=False)
    with contextlib.closing(flow):
        return list(flow)


def facts(out):
    """The two columns that are printed, as a dictionary."""
    lines = [line.split("  ", 1) for line in out.splitlines() if "  " in line]
    return {parts[0].strip(): parts[1].strip() for parts in lines}


EVERYWHERE = [
    pytest.param(".npz"),
    pytest.param(".tfrecord"),
    pytest.param(".lmdb", marks=needs_lmdb),
    pytest.param(".h5", marks=needs_h5py),
]


# What can be named on the command line as tests.dataflow.test_cli:name.

twenty = DataFromList(numbers(20), shuffle=False)


def make_twenty():
    return flow_of(numbers(20))


def make_endless():
    return DataFromGenerator(endless)


def endless():
    while True:
        yield [np.zeros(1000, np.uint8)]


def doubled(datapoint):
    return [datapoint[0] * 2, datapoint[1]]


def make_batches():
    return BatchData(MapData(flow_of(numbers(20)), doubled), 4)


def make_empty():
    return flow_of([])


def make_broken():
    return MapData(flow_of(numbers(20)), break_at_three)


def break_at_three(datapoint):
    if datapoint[0] == 3:
        raise ZeroDivisionError("by the user")
    return datapoint


def make_list():
    return [[1]]


def needs_an_argument(path):
    return flow_of([[path]])


class Closed(ProxyDataFlow):
    """Counts how often it was closed."""

    closed = 0

    def __init__(self):
        super().__init__(flow_of(numbers(20)))

    def close(self):
        Closed.closed += 1


class Namespace:
    flow = twenty


# The command line as a whole


@pytest.mark.parametrize(
    "command, words",
    [
        ([], ["bench", "show", "convert", "Exit codes: 0 done"]),
        (["bench"], ["--stages", "--processes N", "module is run", "you trust", "(5000)"]),
        (["show"], ["--check", "--num N", ".tfrecord", "--allow-pickle"]),
        (["convert"], ["--force", "--max-errors N", "--allow-pickle", "--dtypes"]),
    ],
)
def test_help(command, words, capsys):
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    assert caught.value.code == 0
    out = re.sub(r"\s+", " ", capsys.readouterr().out)
    for word in words:
        assert word in out


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["sing"],
        ["bench"],
        ["bench", "no_colon"],
        ["bench", ":name"],
        ["bench", "module:"],
        ["bench", f"{HERE}:twenty", "--size", "0"],
        ["bench", f"{HERE}:twenty", "--size", "many"],
        ["bench", f"{HERE}:twenty", "--seconds", "nan"],
        ["bench", f"{HERE}:twenty", "--warmup", "-1"],
        ["bench", f"{HERE}:twenty", "--processes", "0"],
        ["show"],
        ["show", "a", "--num", "-1"],
        ["show", "a", "--paths", "a,,b"],
        ["show", "a", "--paths", "a,a"],
        ["show", "a", "--dtypes", "float32,thing"],
        ["show", "a", "--dtypes", "object"],
        ["show", "a", "--dtypes", ""],
        ["convert", "a"],
        ["convert", "a", "b", "--max-errors", "-1"],
        ["convert", "a", "b", "c"],
    ],
)
def test_a_wrong_command_line_exits_with_two(args, capsys):
    with pytest.raises(SystemExit) as caught:
        main(args)
    assert caught.value.code == 2
    out, err = capsys.readouterr()
    assert out == "" and "usage: python -m tensorpack.dataflow" in err


def test_an_error_has_no_traceback_unless_it_is_asked_for(run, tmp_path):
    missing = tmp_path / "missing.npz"
    for extra in [], ["--traceback"]:
        ran = run("show", missing, *extra)
        assert (ran.code, ran.out) == (1, "")
        assert ("Traceback" in ran.err) == bool(extra)
        assert ran.err.splitlines()[-1] == (
            f"python -m tensorpack.dataflow show: error: There is no file {missing} "
            f"(seen from {os.getcwd()})."
        )


def python(*args, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "tensorpack.dataflow", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        universal_newlines=True,
        env=environment,
        **options,
    )


def test_as_a_program(tmp_path):
    path = save(tmp_path / "a.npz", numbers(3))
    with python("show", path) as process:
        out, err = process.communicate(timeout=LONG)
    assert process.returncode == 0, err
    assert facts(out)["datapoints"] == "3"
    with python("show", tmp_path / "b.npz") as process:
        out, err = process.communicate(timeout=LONG)
    assert (process.returncode, out) == (1, "") and "Traceback" not in err
    with python("show") as process:
        process.communicate(timeout=LONG)
    assert process.returncode == 2


def test_nobody_reads_what_it_prints(tmp_path):
    path = save(tmp_path / "a.npz", numbers(300))
    with python("show", path, "--num", "300") as process:
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(LONG) == 0, err
    assert "rror" not in err


PRINTING = """
import sys
from tensorpack.dataflow import DataFromGenerator

def flow():
    return DataFromGenerator(numbers)

def numbers():
    print("it has begun", flush=True)
    while True:
        yield [1]
"""


@pytest.mark.parametrize("options", [[], ["--processes", "2"]])
def test_ctrl_c(write, options):
    child = Child(
        "-m",
        "tensorpack.dataflow",
        "bench",
        f"{write(PRINTING)}:flow",
        *["--seconds", "1000", "--size", "1000000000", *options],
    )
    child.wait_for("it has begun")
    child.send(signal.SIGINT, group=True)
    assert child.end(LONG) == 130
    assert "bench: interrupted." in child.output
    assert "Traceback" not in child.output


# Finding the flow


@pytest.mark.parametrize("name", ["twenty", "make_twenty", "Namespace.flow", "Closed"])
def test_a_flow_of_a_module(run, name):
    ran = run("bench", f"{HERE}:{name}", "--warmup", "0")
    assert ran.code == 0
    assert facts(ran.out)["measured"].startswith("20 datapoints in ")
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
            ran = run("bench", f"{path}:flow", "--warmup", "0")
            assert ran.code == 0
            assert facts(ran.out)["measured"].startswith("7 datapoints")
            assert "printed" in ran.err and "printed" not in ran.out
    finally:
        sys.modules.pop("beside", None)
    assert sys.path == before and "userflow" not in sys.modules


def test_a_flow_of_a_file_in_this_folder(run, write, monkeypatch):
    path = write("from tensorpack.dataflow import FakeData\nflow = FakeData([[2]], 5)\n")
    monkeypatch.chdir(os.path.dirname(path))
    assert run("bench", "userflow.py:flow").code == 0


def test_the_flow_is_closed_also_after_an_error(run):
    before = Closed.closed
    assert run("bench", f"{HERE}:Closed").code == 0
    assert run("bench", f"{HERE}:Closed", "--warmup", "20").code == 1
    assert Closed.closed == before + 2


@pytest.mark.parametrize(
    "name, words",
    [
        ("no_such_name", "has no 'no_such_name'. It has twenty, Ran, "),
        ("Namespace.other", "has no 'Namespace.other'"),
        ("HERE", "is a str, but a DataFlow is needed"),
        ("make_list", "returned a list, but a DataFlow is needed.*DataFromList"),
        ("needs_an_argument", "cannot be called without arguments .*path"),
        ("make_empty", "nothing to measure: DataFromList gave 0 datapoints"),
    ],
)
def test_names_that_are_no_flows(fails, name, words):
    assert re.search(words, fails("bench", f"{HERE}:{name}"))


@pytest.mark.parametrize(
    "text, words",
    [
        ("raise ZeroDivisionError('of mine')", r"ZeroDivisionError: of mine \(.*userflow.py, line"),
        ("import sys; sys.exit(3)", "ended the program with code 3.*__main__"),
        ("import no_such_module_anywhere", r"No module named 'no_such_module_anywhere' \("),
        ("a flow", r"SyntaxError: .*userflow.py, line 1"),
        ("flow = 5", "is a int, but a DataFlow"),
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
    assert "There is no module no_such (seen from" in fails("bench", "no_such.part:flow")
    path = write("", "json.py")
    assert "is the name of another one" in fails("bench", f"{path}:flow")
    path = write("", "my.flow.py")
    assert "Rename the file" in fails("bench", f"{path}:flow")


def test_an_error_while_it_is_measured(fails):
    message = fails("bench", f"{HERE}:make_broken")
    assert re.search(r"error: ZeroDivisionError: by the user \(.*test_cli.py, line \d+\)", message)
    assert message.endswith("--traceback shows more.")
    message = fails("bench", f"{HERE}:make_broken", "--processes", "1")
    assert "ZeroDivisionError: by the user (in a worker process)" in message


@pytest.mark.parametrize("fail", [lambda: FakeData([[1]], size=-1), lambda: loads(b"")])
def test_what_the_package_raises_is_a_sentence(fail):
    """In this part of it and in those below."""
    with pytest.raises(ValueError) as caught:
        fail()
    assert told(caught.value) == str(caught.value)


def test_errors_in_a_line():
    assert told(CommandError("A sentence.")) == "A sentence."
    assert told(KeyError("name")) == "KeyError: name. --traceback shows more."
    assert told(ValueError()) == "ValueError. --traceback shows more."
    assert told(OSError(2, "No such thing", "a")) == "[Errno 2] No such thing: 'a'"
    with pytest.raises(ValueError) as caught:
        BatchData(twenty, 0)
    assert told(caught.value) == str(caught.value)


# Measuring


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class Ticking(DataFlow):
    """Takes some seconds for each datapoint, and some for a reset."""

    def __init__(self, clock, seconds, reset=0.0, nbytes=8):
        self._clock, self._seconds, self._reset = clock, seconds, reset
        self._nbytes = nbytes

    def __iter__(self):
        for seconds in self._seconds:
            self._clock.now += seconds
            yield [np.zeros(self._nbytes, np.uint8)]

    def __len__(self):
        return len(self._seconds)

    def reset_state(self):
        self._clock.now += self._reset


def measured(flow, clock, size=100, seconds=1e9, warmup=0):
    return measure(flow, Limits(size, seconds, warmup), "a flow", clock)


def test_times_are_those_of_the_flow():
    clock = Clock()
    found = measured(Ticking(clock, [5, 1, 2, 3], reset=10, nbytes=1000), clock, warmup=1)
    assert found.latencies.tolist() == [1, 2, 3]
    assert (found.number, found.seconds, found.rate) == (3, 6, 0.5)
    assert (found.first_seconds, found.nbytes, found.ended) == (15, 1000, True)


def test_what_measuring_takes_does_not_count():
    clock = Clock()

    class Weighed:
        def __sizeof__(self):
            clock.now += 100
            return 50

    class Flow(Ticking):
        def __iter__(self):
            for _ in super().__iter__():
                yield [Weighed()]

    found = measured(Flow(clock, [1, 2, 3]), clock)
    assert found.latencies.tolist() == [1, 2, 3]
    assert clock.now > 100


def test_it_stops_at_a_number_or_a_time():
    clock = Clock()
    flow = Ticking(clock, [2] * 50)
    assert measured(flow, clock, size=7).number == 7
    assert not measured(flow, clock, size=7).ended
    assert measured(flow, clock, seconds=11).number == 6  # the sixth is over after 12
    assert measured(flow, clock, seconds=11, warmup=10).number == 6
    assert measured(flow, clock).ended


@pytest.mark.parametrize("warmup, taken", [(5, 3), (3, 3)])
def test_nothing_to_measure(warmup, taken):
    clock = Clock()
    with pytest.raises(CommandError, match=f"gave {taken} datapoints in a pass.*took {warmup}"):
        measured(Ticking(clock, [1, 1, 1]), clock, warmup=warmup)


def test_the_pass_is_left(monkeypatch):
    left = []

    def endless_numbers():
        try:
            while True:
                yield [0]
        finally:
            left.append(True)

    measure(DataFromGenerator(endless_numbers), Limits(5, 1e9, 1), "a flow")
    assert left == [True]


def test_what_each_stage_takes():
    clock = Clock()

    def slow(datapoint):
        clock.now += 3
        return datapoint

    source = Ticking(clock, [1] * 40)
    mapped = MapData(source, slow)
    flow = BatchData(mapped, 4)
    stages = measure_stages(flow, Limits(100, 1e9, 2), clock)
    assert [stage.flow for stage in stages] == [source, mapped, flow]
    assert [stage.taken for stage in stages] == [None, 1, 4]
    assert [stage.own_seconds for stage in stages] == [4, 12, 0]
    assert flow.ds is mapped and mapped.ds is source  # as before
    text = slowest_stage(stages)
    assert "slowest stage is MapData(slow): 1.2e+04 ms for each datapoint of the flow, 75 %" in text
    assert "MultiThreadMapData" in text and "times as fast" not in text


def test_stages_that_drop_and_repeat():
    clock = Clock()
    every_third = iter(range(300))
    flow = MapData(Ticking(clock, [1] * 30), lambda dp: dp if next(every_third) % 3 == 0 else None)
    stages = measure_stages(flow, Limits(10, 1e9, 0), clock)
    assert stages[1].taken == pytest.approx(2.8)  # the tenth is the 28th
    assert "where the data comes from: --processes N" in slowest_stage(stages)


def test_a_stage_that_works_beside_the_others():
    class Halving(ProxyDataFlow):
        """As if half of the work were done by somebody else."""

        def __iter__(self):
            for datapoint in self.ds:
                clock.now -= 0.5
                yield datapoint

    clock = Clock()
    stages = measure_stages(Halving(Ticking(clock, [1] * 10)), Limits(10, 1e9, 0), clock)
    assert [stage.own_seconds for stage in stages] == [1, -0.5]
    assert "Halving is 2 times as fast as the stages before it" in slowest_stage(stages)


def test_the_chain_of_a_flow():
    source = flow_of(numbers(4))
    mapped = MultiThreadMapData(source, 1, doubled)
    assert chain_of(BatchData(mapped, 2))[:2] == [source, mapped]
    assert chain_of(source) == [source]

    class WithAList(DataFlow):
        ds = [[1]]

    assert len(chain_of(WithAList())) == 1


def test_bench_says_all_that_was_measured(run):
    ran = run("bench", f"{HERE}:make_endless", "--size", "300", "--warmup", "5")
    assert ran.code == 0
    found = facts(ran.out)
    assert found["flow"] == "DataFromGenerator"
    assert found["length of a pass"] == "unknown"
    assert re.fullmatch(r"300 datapoints in \S+ s, to the limit", found["measured"])
    assert re.fullmatch(r"[\d.]+ datapoints/s, [\d.]+ MB/s", found["rate"])
    assert found["datapoint"] == "1.0 kB"
    assert re.fullmatch(r"50 % \S+, 90 % \S+, 99 % \S+, most \S+", found["latency in ms"])
    assert re.fullmatch(r"after \S+ s", found["first datapoint"])
    assert "in this process" in found["memory"]
    assert re.search(r"DataFromGenerator takes \S+ ms for a datapoint\.", ran.out)
    assert "--stages" not in ran.out  # there is but one


def test_bench_stops_after_some_seconds(run):
    ran = run("bench", f"{HERE}:make_endless", "--size", "1000000000", "--seconds", "0.05")
    assert ran.code == 0
    assert "to the limit" in ran.out


def test_bench_stages(run):
    assert "--stages tells which of its 3 stages" in run("bench", f"{HERE}:make_batches").out
    ran = run("bench", f"{HERE}:make_batches", "--stages", "--warmup", "0")
    assert ran.code == 0
    lines = [re.split(r"\s{2,}", line.strip()) for line in ran.out.splitlines()]
    rows = {line[0]: line[1:] for line in lines if len(line) > 3 and line[0].strip("-")}
    assert list(rows) == ["stage", "DataFromList", "MapData(doubled)", "BatchData (all)"]
    assert rows["MapData(doubled)"][2] == "1" and rows["BatchData (all)"][2] == "4"
    assert facts(ran.out)["flow"] == "DataFromList > MapData(doubled) > BatchData"
    assert "The slowest stage is " in ran.out


def test_bench_in_processes(run):
    ran = run("bench", f"{HERE}:make_batches", "--processes", "2", "--size", "20", "--stages")
    assert ran.code == 0
    found = facts(ran.out)
    assert found["flow"].endswith("BatchData > MultiProcessRunnerZMQ")
    assert found["measured"].startswith("4 datapoints")  # five in a pass, and one to warm up
    assert "2 workers with up to" in found["memory"]


# What is printed


@pytest.mark.parametrize(
    "nbytes, text",
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (123456789, "123.5 MB"), (5e12, "5.0 TB")],
)
def test_sizes(nbytes, text):
    assert size_text(nbytes) == text


@pytest.mark.parametrize(
    "value, what, values",
    [
        (np.arange(6, dtype=np.uint8).reshape(2, 3), "array uint8 [2, 3]", "0 to 5"),
        (np.array([[-1.5, np.nan, 2, np.inf]]), "array float64 [1, 4]", "-1.5 to 2, 2 not finite"),
        (np.full(3, np.nan), "array float64 [3]", "3 not finite"),
        (np.zeros((0, 4), np.int16), "array int16 [0, 4]", "nothing"),
        (np.array(["a", "bc"]), "array <U2 [2]", ""),
        (np.array([True, False]), "array bool [2]", "False to True"),
        (np.array([1j]), "array complex128 [1]", ""),
        (np.float32(0.5), "numpy float32", "0.5"),
        (7, "int", "7"),
        (None, "NoneType", "None"),
        ("text", "str of 4", "'text'"),
        (b"x" * 200, "bytes of 200", "b'" + "x" * 45 + "..."),
    ],
)
def test_the_values_of_a_component(value, what, values):
    assert list(structure([value], "0"))[1] == ["0[0]", what, values]


def test_the_structure_of_a_datapoint():
    datapoint = {"a": [1, ("b", {})], "c": list(range(30))}
    rows = list(structure(datapoint, "5"))
    assert rows[:6] == [
        ["5", "dict of 2", ""],
        ["5['a']", "list of 2", ""],
        ["5['a'][0]", "int", "1"],
        ["5['a'][1]", "tuple of 2", ""],
        ["5['a'][1][0]", "str of 1", "'b'"],
        ["5['a'][1][1]", "dict of 0", ""],
    ]
    assert rows[-2:] == [["5['c'][19]", "int", "19"], ["5['c']", "... and 10 more", ""]]
    deep = [[[[[[1]]]]]]
    assert [path for path, _, _ in structure(deep, "0")][-1] == "0[0][0][0][0]"


# show


NAMES = {".npz": "npz", ".tfrecord": "TFRecord", ".lmdb": "LMDB", ".h5": "HDF5"}


@pytest.mark.parametrize("suffix", EVERYWHERE)
@pytest.mark.parametrize("check", [False, True])
def test_show(run, tmp_path, suffix, check):
    path = save(tmp_path / f"a{suffix}", numbers(5))
    ran = run("show", path, "--num", "2", *(["--check"] if check else []))
    assert ran.code == 0
    found = facts(ran.out)
    assert (found["file"], found["format"]) == (path, NAMES[suffix])
    assert (found["version"], found["datapoints"]) == ("1", "5")
    assert found["size"].startswith(size_text(os.path.getsize(path)))
    assert re.search(r"^0\[1\]  +array float32 \[2, 3\]  +0 to 0$", ran.out, re.MULTILINE)
    assert re.search(r"^1\[1\]  +array float32 \[2, 3\]  +1 to 1$", ran.out, re.MULTILINE)
    assert not re.search(r"^2\[1\]", ran.out, re.MULTILINE)
    assert ("Checked: 5 datapoints, none is damaged." in ran.out) == check
    assert "no checksums" not in ran.out
    assert "Found" not in ran.out  # the log goes elsewhere


@pytest.mark.parametrize("suffix", EVERYWHERE)
def test_what_a_file_holds_counts_more_than_its_name(run, tmp_path, suffix):
    path = str(tmp_path / "a.csv")
    os.rename(save(tmp_path / f"a{suffix}", numbers(3)), path)
    ran = run("show", path, "--num", "0")
    assert ran.code == 0
    assert facts(ran.out)["format"] == NAMES[suffix]
    assert f"has the name of CSV, but is {NAMES[suffix]}." in ran.err
    assert "values" not in ran.out


def test_show_a_table(run, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("name,size\none,1\ntwo,2\n")
    ran = run("show", path, "--dtypes", "str,int32", "--check")
    assert ran.code == 0
    found = facts(ran.out)
    assert (found["columns"], found["version"], found["datapoints"]) == ("name, size", "none", "2")
    assert re.search(r"^0\[0\]  +str of 3  +'one'$", ran.out, re.MULTILINE)
    assert re.search(r"^0\[1\]  +numpy int32  +1$", ran.out, re.MULTILINE)
    assert "There are no checksums in this file" in ran.out
    found = facts(run("show", path, "--no-header").out)
    assert (found["columns"], found["datapoints"]) == ("none", "3")
    tabs = tmp_path / "a.TSV"
    tabs.write_text("1\t2\n")
    assert "array" not in run("show", tabs, "--no-header", "--dtypes", "float64").out


def test_show_sparse_text(run, tmp_path):
    for name in "a.svm", "a.txt":
        path = tmp_path / name
        path.write_text("# two lines\n+1 1:0.5 3:2 # one\n-1 2:1e3\n")
        ran = run("show", path)
        assert ran.code == 0, ran.err
        found = facts(ran.out)
        assert (found["format"], found["features"], found["datapoints"]) == ("SVMlight", "3", "2")


def test_files_of_unknown_format(fails, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("some text\n")
    message = fails("show", path)
    assert "begins with b'some text\\n', and its name ends with '.txt'. Known are LMDB" in message
    path.write_bytes(b"")
    assert "begins with b''" in fails("show", path)
    path.write_bytes(gzip.compress(b"1,2"))
    assert "compressed by gzip. Unpack it first" in fails("show", path)
    assert "is a folder without data.mdb" in fails("show", tmp_path)


@pytest.mark.parametrize("suffix", EVERYWHERE)
def test_empty_files(fails, tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"")
    assert str(path) in fails("show", path)


def test_records_of_another_program(run, tmp_path):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(record(b"") + record(b"some bytes"))
    ran = run("show", path, "--num", "2", "--check")
    assert ran.code == 0
    found = facts(ran.out)
    assert (found["contents"], found["version"]) == ("records of another program", "none")
    assert found["datapoints"] == "2"
    assert re.search(r"^1\[0\]  +bytes of 10  +b'some bytes'$", ran.out, re.MULTILINE)


@needs_lmdb
def test_lmdb_of_others(run, fails, tmp_path):
    import lmdb
    import msgpack

    def make(name, value):
        path = str(tmp_path / name)
        with lmdb.open(path, subdir=False, map_size=2**20) as env:
            with env.begin(write=True) as transaction:
                transaction.put(b"00000000", value)
                transaction.put(b"__keys__", msgpack.packb([b"00000000"], use_bin_type=True))
        return path

    path = make("of_2017.lmdb", msgpack.packb([5, "text"], use_bin_type=True))
    ran = run("show", path, "--check")
    assert (ran.code, facts(ran.out)["contents"]) == (0, "datapoints of tensorpack 0.2, as msgpack")
    assert re.search(r"^0\[1\]  +str of 4  +'text'$", ran.out, re.MULTILINE)
    assert "no checksums" in ran.out

    path = make("of_others.lmdb", b"anything")
    ran = run("show", path)
    assert (ran.code, facts(ran.out)["version"]) == (0, "none")
    assert re.search(r"^0\[1\]  +bytes of 8  +b'anything'$", ran.out, re.MULTILINE)

    path = make("of_later.lmdb", pickle.dumps([6, np.arange(4)], 2))
    for command in ["show", path], ["convert", path, tmp_path / "new.npz"]:
        assert "are pickles. If you trust the file, give --allow-pickle" in fails(*command)
        ran = run(*command, "--allow-pickle")
        assert ran.code == 0
    assert_same(load(tmp_path / "new.npz"), [[6, np.arange(4)]])


@needs_lmdb
def test_the_folder_of_an_lmdb_database(run, tmp_path):
    folder = tmp_path / "folder.lmdb"
    folder.mkdir()
    LMDBSerializer.save(flow_of(numbers(3)), str(folder))
    for path in folder, folder / "data.mdb", f"{folder}{os.sep}":
        ran = run("show", path)
        assert (ran.code, facts(ran.out)["datapoints"]) == (0, "3")


@needs_h5py
def test_the_datasets_that_are_shown(run, fails, tmp_path):
    import h5py

    path = str(tmp_path / "a.h5")
    with h5py.File(path, "w") as file:
        file["train/image"] = np.zeros((4, 2, 2), np.uint8)
        file["train/label"] = np.arange(4)
        file["mean"] = 5.0
    ran = run("show", path, "--check")
    assert ran.code == 0
    found = facts(ran.out)
    assert (found["version"], found["datasets"]) == ("none", "train/image, train/label")
    assert "no checksums" in ran.out
    ran = run("show", path, "--paths", "train/label")
    assert facts(ran.out)["datasets"] == "train/label"
    assert "no dataset 'other'" in fails("show", path, "--paths", "other")
    with h5py.File(path, "w"):
        pass
    assert "has no dataset whose rows could be datapoints" in fails("show", path)


@pytest.mark.parametrize(
    "option", [["--dtypes", "int32"], ["--no-header"], ["--paths", "a"], ["--allow-pickle"]]
)
def test_options_that_would_make_no_difference(fails, tmp_path, option):
    path = save(tmp_path / "a.npz", numbers(3))
    assert f"{option[0]} is for files in " in fails("show", path, *option)
    assert f"{option[0]} is for files in " in fails("convert", path, tmp_path / "b.npz", *option)
    assert not (tmp_path / "b.npz").exists()


# show --check of what is damaged


def record(data):
    """A record of a TFRecord file."""
    length = struct.pack("<Q", len(data))
    return b"".join(
        [
            length,
            struct.pack("<I", masked_crc32c(length)),
            data,
            struct.pack("<I", masked_crc32c(data)),
        ]
    )


def places_of_records(data):
    place = 0
    while place < len(data):
        yield place
        place += 16 + struct.unpack_from("<Q", data, place)[0]


def change(path, place, byte=b"?"):
    with open(path, "r+b") as file:
        file.seek(place)
        file.write(byte)


def test_damaged_tfrecords(run, fails, tmp_path):
    path = save(tmp_path / "a.tfrecord", numbers(6))
    places = list(places_of_records((tmp_path / "a.tfrecord").read_bytes()))
    for index in 0, 3:
        change(path, places[index] + 30)
    ran = run("show", path, "--check")
    assert ran.code == 1
    lines = ran.out.splitlines()
    begin = lines.index("DAMAGED: 2 found, beside 4 datapoints that are whole:")
    assert [line.split(" has ")[0] for line in lines[begin + 1 :]] == [
        f"{path}: record 0 at byte 0",
        f"{path}: record 3 at byte {places[3]}",
    ]
    assert facts(ran.out)["datapoints"] == "6"
    assert "Skipped" not in ran.err
    assert "record 0 at byte 0" in fails("show", path)


def test_a_tfrecord_file_whose_rest_is_lost(run, tmp_path):
    path = save(tmp_path / "a.tfrecord", numbers(6))
    place = list(places_of_records((tmp_path / "a.tfrecord").read_bytes()))[4]
    change(path, place)
    ran = run("show", path, "--check")
    assert ran.code == 1
    assert "DAMAGED: 1 found, beside 4 datapoints" in ran.out
    assert f"record 4 at byte {place} has a wrong checksum of its length" in ran.out
    assert facts(ran.out)["datapoints"] == "unknown, for a length is damaged"


def test_damaged_columns(run, fails, tmp_path):
    path = save(tmp_path / "a.npz", [[np.full(100, 7, np.uint8), np.full(100, 9, np.uint8)]])
    data = (tmp_path / "a.npz").read_bytes()
    change(path, data.index(b"\x07" * 100) + 5)
    change(path, data.index(b"\x09" * 100) + 5)
    ran = run("show", path, "--check")
    assert ran.code == 1
    assert "DAMAGED: 2 found, beside 0" in ran.out
    assert re.search(r"member values_0.npy at byte \d+: .*CRC", ran.out)
    assert re.search(r"member values_1.npy at byte \d+: .*CRC", ran.out)
    assert "values_0.npy" in fails("show", path)


def test_a_file_that_is_cut_off(run, tmp_path):
    for suffix in ".npz", ".tfrecord":
        path = save(tmp_path / f"a{suffix}", numbers(6))
        os.truncate(path, os.path.getsize(path) - 20)
        ran = run("show", path, "--check")
        assert ran.code == 1
        assert "DAMAGED: 1 found" in ran.out and path in ran.out


def test_wrong_lines(run, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n3\n4,x\n5,6\n")
    ran = run("show", path, "--check", "--dtypes", "int32")
    assert ran.code == 1
    assert "DAMAGED: 2 found, beside 2" in ran.out
    assert f"{path}: line 3 has 1 columns" in ran.out
    assert f"{path}: line 4, column 'b': 'x' is no integer" in ran.out
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n1 x:1\n1 2:y\n")
    ran = run("show", path, "--check")
    assert ran.code == 1
    assert "DAMAGED: 2 found, beside 1" in ran.out
    assert f"{path}: line 2, column 3: " in ran.out and f"{path}: line 3" in ran.out


@needs_lmdb
def test_damaged_lmdb_records(run, fails, tmp_path):
    import lmdb

    path = save(tmp_path / "a.lmdb", numbers(6))
    with lmdb.open(path, map_size=2**26, subdir=False, lock=False) as env:
        with env.begin(write=True) as transaction:
            for key in b"00000002", b"00000004":
                value = bytearray(transaction.get(key))
                value[-1] ^= 1
                transaction.put(key, bytes(value))
    ran = run("show", path, "--check")
    assert ran.code == 1
    assert "DAMAGED: 2 found, beside 4" in ran.out
    assert "key b'00000002': " in ran.out and "key b'00000004': " in ran.out
    os.truncate(path, os.path.getsize(path) // 2)
    ran = run("show", path, "--check")
    assert ran.code == 1
    assert re.search("DAMAGED: 1 found, beside 0.*\n.*byte", ran.out)
    assert path in fails("show", path)


@needs_h5py
def test_damaged_rows(run, tmp_path):
    path = save(tmp_path / "a.h5", [[np.full(200000, i, np.uint8)] for i in range(4)])
    data = (tmp_path / "a.h5").read_bytes()
    change(path, data.index(b"\x02" * 1000) + 500)
    ran = run("show", path, "--check")
    assert ran.code == 1
    assert "DAMAGED: 1 found, beside 3" in ran.out
    assert "dataset 'component_0' is damaged in row 2" in ran.out


# convert


@pytest.mark.parametrize("before", EVERYWHERE)
@pytest.mark.parametrize("after", EVERYWHERE)
def test_convert(run, tmp_path, before, after):
    # a row of a dataset is a numpy scalar
    datapoints = [[np.int64(i), np.full((2, 3), i, np.float32)] for i in range(5)]
    path = save(tmp_path / f"a{before}", datapoints)
    target = tmp_path / f"b{after}"
    ran = run("convert", path, target)
    assert ran.code == 0, ran.err
    size = size_text(os.path.getsize(str(target)))
    assert ran.out == (
        f"5 datapoints of {path} ({NAMES[before]}) are in {target} ({NAMES[after]}, {size}).\n"
    )
    assert_same(load(target), datapoints)
    assert sorted(os.listdir(str(tmp_path))) == sorted({f"a{before}", f"b{after}"})


def test_nothing_is_replaced_unless_it_is_asked_for(run, fails, tmp_path):
    path, target = save(tmp_path / "a.npz", numbers(3)), tmp_path / "b.tfrecord"
    target.write_text("precious")
    assert f"{target} exists already. Give another name, or --force" in fails(
        "convert", path, target
    )
    assert target.read_text() == "precious"
    assert run("convert", path, target, "--force").code == 0
    assert_same(load(target), numbers(3))
    assert run("convert", path, path, "--force").code == 0  # also itself
    assert_same(load(path), numbers(3))
    assert run("convert", path, tmp_path / "new.npz", "--force").code == 0
    assert sorted(os.listdir(str(tmp_path))) == ["a.npz", "b.tfrecord", "new.npz"]


@pytest.mark.parametrize("options", [[], ["--force"]])
def test_a_failure_leaves_nothing_and_takes_nothing(fails, tmp_path, options):
    path = save(tmp_path / "a.tfrecord", [[1], {"a": 2}])
    target = tmp_path / "b.npz"
    if options:
        target.write_text("precious")
    assert "Datapoint 1 has another form" in fails("convert", path, target, *options)
    assert sorted(os.listdir(str(tmp_path))) == ["a.tfrecord", *["b.npz" for _ in options]]
    assert not options or target.read_text() == "precious"


def test_a_file_that_cannot_be_replaced(fails, tmp_path, monkeypatch):
    path, target = save(tmp_path / "a.npz", numbers(3)), tmp_path / "b.npz"
    target.write_text("precious")
    real = os.replace

    def replace(source, place):
        if source.endswith(".new"):
            raise PermissionError(1, "Not now")
        real(source, place)

    monkeypatch.setattr(os, "replace", replace)
    assert "Not now" in fails("convert", path, target, "--force")
    assert sorted(os.listdir(str(tmp_path))) == ["a.npz", "b.npz"]
    assert target.read_text() == "precious"


def test_damaged_records_are_left_out_if_that_is_allowed(run, fails, tmp_path):
    path, target = save(tmp_path / "a.tfrecord", numbers(6)), tmp_path / "b.npz"
    places = list(places_of_records((tmp_path / "a.tfrecord").read_bytes()))
    for index in 0, 3:
        change(path, places[index] + 30)
    assert "record 0 at byte 0" in fails("convert", path, target)
    assert "max_errors=1 allows" in fails("convert", path, target, "--max-errors", "1")
    assert not target.exists()
    ran = run("convert", path, target, "--max-errors", "2")
    assert ran.code == 0
    assert ran.out.startswith("4 datapoints of ")
    assert "Damaged and left out: 2." in ran.out
    assert f"record 3 at byte {places[3]}" in ran.err
    assert_same(load(target), [numbers(6)[index] for index in (1, 2, 4, 5)])


@needs_h5py
def test_a_damaged_first_record_is_counted_once(run, tmp_path):
    """What is written to datasets is looked at beforehand."""
    path, target = save(tmp_path / "a.tfrecord", [[np.int64(i)] for i in range(4)]), "b.h5"
    change(path, 30)
    ran = run("convert", path, tmp_path / target, "--max-errors", "1")
    assert ran.out.startswith("3 datapoints of ") and "left out: 1." in ran.out


def test_columns_with_dtypes(run, tmp_path):
    path, target = tmp_path / "a.csv", tmp_path / "b.npz"
    path.write_text("name,size\none,1\ntwo,2\n")
    assert run("convert", path, target, "--dtypes", "str,int16").code == 0
    assert_same(load(target), [["one", np.int16(1)], ["two", np.int16(2)]])


@needs_h5py
def test_names_of_datasets(run, fails, tmp_path):
    import h5py

    path = save(tmp_path / "a.npz", [{"image": np.zeros((2, 2)), "label": 3}] * 4)
    target = tmp_path / "b.h5"
    assert run("convert", path, target).code == 0
    with h5py.File(str(target), "r") as file:
        assert sorted(file) == ["image", "label"]
        assert file["label"][:].tolist() == [3] * 4
    target = tmp_path / "c.h5"
    message = fails("convert", path, target, "--paths", "one")
    assert "1 names in --paths (one), but a datapoint has 2 components: image, label" in message
    assert run("convert", path, target, "--paths", "train/x,train/y").code == 0
    again = tmp_path / "d.h5"
    assert run("convert", target, again, "--paths", "train/y").code == 0
    with h5py.File(str(again), "r") as file:
        assert list(file["train"]) == ["y"]


def test_raw_records_are_converted_with_a_warning(run, tmp_path):
    path, target = tmp_path / "a.tfrecord", tmp_path / "b.npz"
    path.write_bytes(record(b"one") + record(b"two"))
    ran = run("convert", path, target)
    assert ran.code == 0
    assert "was not written by tensorpack: its records are taken as they are" in ran.err
    assert_same(load(target), [[b"one"], [b"two"]])


def test_targets_that_cannot_be_written(fails, tmp_path):
    path = save(tmp_path / "a.npz", numbers(3))
    for name in "b.csv", "b", "b.npz.gz":
        assert "says nothing of a format to write. Let it end with one of" in fails(
            "convert", path, tmp_path / name
        )
    folder = tmp_path / "folder.npz"
    folder.mkdir()
    assert "is a folder. Give the name of a file" in fails("convert", path, folder, "--force")
    assert "there is no folder" in fails("convert", path, tmp_path / "no" / "b.npz")


@needs_lmdb
def test_into_the_folder_of_an_lmdb_database(run, tmp_path):
    path, folder = save(tmp_path / "a.npz", numbers(3)), tmp_path / "b.lmdb"
    folder.mkdir()
    assert run("convert", path, folder).code == 0
    assert run("convert", path, folder).code == 1
    assert run("convert", path, folder, "--force").code == 0
    assert_same(load(folder), numbers(3))


def test_npz_files_take_no_errors(run, tmp_path):
    path = save(tmp_path / "a.npz", numbers(3))
    ran = run("convert", path, tmp_path / "b.npz", "--max-errors", "3")
    assert ran.code == 0
    assert "--max-errors 3 makes no difference" in ran.err


def test_the_log_is_as_before(run, tmp_path, capsys):
    path = save(tmp_path / "a.tfrecord", numbers(3))
    change(path, 30)
    run("show", path, "--check")
    logger.warning("Skipped 1 of 2: a line")
    assert "Skipped 1 of 2: a line" in capsys.readouterr().out
