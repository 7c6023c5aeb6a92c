"""`bench` prints what it has measured."""

import re

import pytest

from tests.dataflow._cli.files import facts
from tests.dataflow._cli.flows import HERE

pytest.importorskip("msgpack")


def test_bench_says_all_that_was_measured(run):
    ran = run("bench", f"{HERE}:make_endless", "--size", "300", "--warmup", "5")
    assert ran.code == 0
    found = facts(ran.out)
    assert found["flow"] == "DataFromGenerator"
    assert found["length of a pass"] == "unknown"
    assert re.fullmatch(r"300 datapoints in 1 pass and \S+ s", found["measured"])
    assert re.fullmatch(r"[\d.]+ datapoints/s, [\d.]+ MB/s", found["rate"])
    assert found["datapoint"] == "1.0 kB"
    assert re.fullmatch(r"50 % \S+, 90 % \S+, 99 % \S+, most \S+; mean .*", found["latency in ms"])
    assert re.fullmatch(r"after \S+ s", found["first datapoint"])
    assert all(len(number.strip("0.")) <= 4 for number in re.findall(r"[\d.]+", found["rate"]))


def test_bench_tells_why_it_had_too_few(run, write):
    path = write(
        "from tensorpack.dataflow import DataFromIterable\n"
        "flow = DataFromIterable(iter([[1], [2], [3]]))\n"
    )
    ran = run("bench", f"{path}:flow")
    assert ran.code == 0
    words = r"2 datapoints in 1 pass and \S+ s; no other pass could begin: RuntimeError: .* ended.*"
    assert re.fullmatch(words, facts(ran.out)["measured"])


def test_bench_stages(run):
    ran = run("bench", f"{HERE}:make_batches", "--stages", "--warmup", "0", "--size", "25")
    assert ran.code == 0
    lines = [re.split(r"\s{2,}", line.strip()) for line in ran.out.splitlines()]
    rows = {line[0]: line[1:] for line in lines if len(line) > 3 and line[0].strip("-")}
    assert list(rows) == ["stage", "DataFromList", "MapData(doubled)", "BatchData"]
    assert rows["MapData(doubled)"][2] == "1" and rows["BatchData"][2] == "4"
    assert facts(ran.out)["flow"] == "DataFromList > MapData(doubled) > BatchData"
    assert "The slowest stage is " in ran.out


def test_bench_in_processes(run):
    ran = run("bench", f"{HERE}:make_batches", "--processes", "2", "--size", "20", "--stages")
    assert ran.code == 0
    found = facts(ran.out)
    assert found["flow"].endswith("BatchData > MultiProcessRunnerZMQ")
    assert found["measured"].startswith("20 datapoints in 5 passes")  # with the one to warm up
