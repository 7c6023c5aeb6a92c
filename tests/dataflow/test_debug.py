"""The measured rate is right on a clock of the test's own, and the description is readable."""

import itertools
from types import SimpleNamespace

import numpy as np

from tensorpack.dataflow import DataFromGenerator, DataFromList, PrintData, TestDataSpeed, debug
from tests.contracts.dataflow import contract_of
from tests.dataflow.flows import ResetsCounted, numbers


def ticking():
    """A clock on which 2 seconds pass between every two looks."""
    return itertools.count(0, 2).__next__


TestSpeedInAPipeline = contract_of(lambda: TestDataSpeed(numbers(5), size=3), length=5)
TestPrintData = contract_of(lambda: PrintData(numbers(5)), length=5)


def test_the_rest_of_a_pass_is_not_measured_but_the_next_one_is(capsys):
    flow = TestDataSpeed(numbers(5), size=3)
    going = iter(flow)
    next(going)
    twin = TestDataSpeed(numbers(5), size=3)
    twin.load_state_dict(flow.state_dict())
    capsys.readouterr()
    assert list(twin) == [[1], [2], [3], [4]]
    assert "datapoints/sec" not in capsys.readouterr().out
    assert len(list(twin)) == 5
    assert "datapoints/sec" in capsys.readouterr().out


def test_rate_is_datapoints_in_a_second(capsys, monkeypatch):
    monkeypatch.setattr(debug, "time", SimpleNamespace(perf_counter=ticking()))
    assert TestDataSpeed(numbers(100), size=50).start() == 25
    captured = capsys.readouterr()
    assert "50 datapoints in 2.000 sec.: 25.0 datapoints/sec." in captured.out
    assert "50/50" in captured.err
    flow = ResetsCounted([[i] for i in range(8)])
    assert TestDataSpeed(flow, warmup=2).start_test() == 3
    assert flow.resets == 1


def test_print_shows_what_is_in_a_datapoint(capsys):
    datapoint = [np.array([[1, 5]], np.uint8), {"name": "x" * 100, "box": (1.5, 2, 3, 4)}, [[[0]]]]
    flow = PrintData(DataFromList([datapoint, datapoint]), name="train", max_list=3)
    assert list(flow) == [datapoint, datapoint]
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("DataFlow Info (train): datapoint 0 is")
    assert lines[1:] == [
        "  list of 3",
        "    0: ndarray [1, 2] uint8 in [1, 5]",
        "    1: dict of 2",
        "      name: str '" + "x" * 56 + "...",
        "      box: tuple of 4",
        "        0: float 1.5",
        "        1: int 2",
        "        2: int 3",
        "        ... 1 more",
        "    2: list of 1",
        "      0: list of 1",
        "        0: list of 1",
    ]


def test_print_looks_at_the_first_datapoints_of_a_pass(capsys):
    flow = PrintData(numbers(5), num=2, label="of 2017")
    assert PrintData(numbers(5), 1, None, "of 2017").name == flow.name
    list(flow)
    list(flow)
    out = capsys.readouterr().out
    assert out.count("(of 2017): datapoint 0") == out.count("(of 2017): datapoint 1") == 2
    assert "datapoint 2" not in out


def test_print_shows_arrays_of_other_libraries(capsys):
    class Tensor:
        shape = (2, 3)
        dtype = "torch.float32"

    list(PrintData(DataFromList([[Tensor()]])))
    assert "    0: Tensor [2, 3] torch.float32" in capsys.readouterr().out.splitlines()


def test_print_info_logs_at_once_and_takes_no_datapoint_that_it_does_not_log(capsys):
    taken = []

    def source():
        for i in range(5):
            taken.append(i)
            yield [i]

    flow = PrintData(DataFromGenerator(source), num=3)
    flow.print_info()
    assert taken == [0, 1, 2]
    out = capsys.readouterr().out
    assert [out.count(f"datapoint {i} is") for i in range(4)] == [1, 1, 1, 0]
    assert list(flow) == [[i] for i in range(5)]
