"""The launcher starts real servers of TensorFlow, which find each other."""

import re

import pytest

from tests.harness import Child


@pytest.mark.slow
def test_workers_and_a_server_form_a_group():
    options = ["--workers", "2", "--ps", "1", "--grace", "5"]
    child = Child("-m", "tensorpack.launch", *options, "-m", "tests.groups.serving", 5)
    assert child.end(timeout=120) == 0, child.output
    assert sorted(re.findall(r"^\[([\w ]+)\] serving", child.output, re.MULTILINE)) == [
        "ps 0",
        "worker 0",
        "worker 1",
    ]
    assert len(re.findall(r"^\[worker \d\] done", child.output, re.MULTILINE)) == 2
