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
