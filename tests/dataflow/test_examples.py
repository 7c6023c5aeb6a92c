"""The docstring of each flow that combines or makes datapoints has an example, and it runs."""

import doctest

import numpy as np
import pytest

from tensorpack import dataflow

MODULES = "batch cache join map raw repeat shuffle".split()
FLOWS = [name for module in MODULES for name in dataflow._NAMES[module].split()]
FLOWS.remove("FakeData")  # which draws at random


@pytest.mark.parametrize("name", FLOWS)
def test_an_example(name):
    flow = getattr(dataflow, name)
    names = {each: getattr(dataflow, each) for each in FLOWS}
    (example,) = doctest.DocTestFinder(recurse=False).find(flow, name, globs={**names, "np": np})
    failed, attempted = doctest.DocTestRunner().run(example)
    assert attempted and not failed
