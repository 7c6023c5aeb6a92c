"""The launcher starts real servers of TensorFlow, which find each other."""

import re
from importlib.util import find_spec

import pytest

from tests.checks import ROOT
from tests.harness import Child

from .group import Launched

pytestmark = [pytest.mark.one_row, pytest.mark.slow]


def test_workers_and_a_server_form_a_group():
    child = Launched({"kind": "servers"}, ps=1)
    assert child.end(timeout=120) == 0, child.output
    ended = re.findall(r'^\[(\w+ \d)\] RESULT {"step": 16, ', child.output, re.MULTILINE)
    assert sorted(ended) == ["worker 0", "worker 1"]


@pytest.mark.skipif(find_spec("horovod") is not None, reason="about a machine without it")
def test_a_script_of_horovod_runs_without_it(tmp_path):
    script = ROOT / "tests" / "tf1" / "scripts" / "horovod_train.py"
    options = ["--workers", "2", "-m", "tensorpack.tf1", script, tmp_path / "log"]
    child = Child("-m", "tensorpack.launch", *options)
    assert child.end(timeout=120) == 0, child.output
    for worker in 0, 1:
        assert f"worker {worker} ({worker}) of 2: -4.0" in child.output
