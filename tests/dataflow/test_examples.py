"""The docstring of each flow that combines or makes datapoints has an example, and it runs."""

import doctest

import numpy as np
import pytest

from tensorpack import dataflow

MODULES = "batch cache choose join map random_map raw repeat shuffle".split()
FLOWS = [name for module in MODULES for name in dataflow._NAMES[module].split()]


@pytest.mark.parametrize("name", FLOWS)
def test_an_example(name):
    flow = getattr(dataflow, name)
    names = {each: getattr(dataflow, each) for each in FLOWS}
    (example,) = doctest.DocTestFinder(recurse=False).find(flow, name, globs={**names, "np": np})
    failed, attempted = doctest.DocTestRunner().run(example)
    assert attempted and not failed
