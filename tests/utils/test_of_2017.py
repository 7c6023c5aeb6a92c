"""Helpers of 2017: warnings, stand-ins for missing modules, bins, tables, a trace of calls."""

import argparse
import math
import pickle
import re
import sys
import types

import numpy as np
import pytest

from tensorpack.utils.of_2017 import develop
from tensorpack.utils.of_2017.debug import enable_call_trace
from tensorpack.utils.of_2017.discretize import UniformDiscretizer1D, UniformDiscretizerND
from tensorpack.utils.of_2017.globvars import GlobalNS, globalns, use_global_argument
from tensorpack.utils.of_2017.lut import LookUpTable


def test_a_deprecated_function_warns_as_often_as_it_may_and_works(capsys, monkeypatch):
    monkeypatch.setattr(develop, "_warnings", develop._warnings.copy())

    @develop.deprecated("Use g.", max_num_warnings=2)
    def f(x, y=1):
        """Adds."""
        return x + y

    assert [f(1), f(1, y=5), f(3)] == [2, 6, 4]
    assert (f.__name__, f.__doc__) == ("f", "Adds.")
    develop.log_deprecated("h", "Use g.", "2031-01-02")
    develop.log_deprecated("", "Use g.", "2031-01-02")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("[Deprecated] ")[1] for line in lines] == [
        *2 * ["f was deprecated. Use g."],
        "h will be deprecated after 2031-01-02. Use g.",
        "Use g. Legacy period ends after 2031-01-02",
    ]


def test_what_stands_for_a_class_or_a_function_names_the_dependency():
    text = "Cannot import 'lmdb,zmq', therefore 'Thing' is not available"
    Thing = develop.create_dummy_class("Thing", ["lmdb", "zmq"])
    derived = type("Derived", (Thing,), {})
    for make in (Thing, derived, develop.create_dummy_func("Thing", ["lmdb", "zmq"])):
        with pytest.raises(ImportError, match=text):
            make(1, x=2)
    with pytest.raises(AttributeError, match=text):
        Thing.save  # noqa: B018


def test_names_for_documentation(monkeypatch):
    monkeypatch.delenv("READTHEDOCS", raising=False)
    monkeypatch.delenv("DOC_BUILDING", raising=False)
    assert not develop.building_rtfd()
    monkeypatch.setenv("READTHEDOCS", "True")
    assert develop.building_rtfd()
    assert develop.HIDE_DOC(len) is len


def test_a_module_is_imported_when_it_is_used():
    names = {}
    names["colours"] = develop.LazyLoader("colours", names, "colorsys")
    assert names["colours"].rgb_to_hls(0.0, 0.0, 0.0) == (0.0, 0.0, 0.0)
    assert names["colours"] is sys.modules["colorsys"]


def test_a_function_that_dill_pickles(monkeypatch):
    wrapped = develop.NonPicklableWrapper(lambda x: x + 1)
    assert wrapped(2) == 3
    codec = types.ModuleType("dill")  # a stand-in: the package is not among the requirements
    codec.dumps, codec.loads = lambda obj: b"bytes", abs
    monkeypatch.setitem(sys.modules, "dill", codec)
    assert wrapped.__reduce__() == (abs, (b"bytes",))
    monkeypatch.setitem(sys.modules, "dill", None)
    with pytest.raises(ImportError, match="dill"):
        pickle.dumps(wrapped)


def test_calls_are_printed_with_their_callers(capsys):
    def inner():
        return 5

    before = sys.gettrace()
    enable_call_trace()
    try:
        inner()
    finally:
        sys.settrace(before)
    pattern = rf"Call to `inner` on line {__file__}:(\d+) from {__file__}:\d+\n"
    assert re.search(pattern, capsys.readouterr().out).group(1) == str(
        inner.__code__.co_firstlineno
    )


def test_arguments_are_attributes_beside_those_that_were_there(monkeypatch):
    assert isinstance(globalns, GlobalNS)
    for name in "folder", "epochs":
        monkeypatch.setattr(globalns, name, "a", raising=False)
    use_global_argument(argparse.Namespace(epochs=5))
    assert vars(globalns) == {"folder": "a", "epochs": 5}


def test_a_table_looks_up_both_ways():
    table = LookUpTable("xyz")
    assert (table.size(), table.get_obj(1), table.get_idx("z")) == (3, "y", 2)
    assert str(table) == "['x', 'y', 'z']"


def test_the_bin_of_a_value(capsys):
    bins = UniformDiscretizer1D(-1, 1, 0.25)
    values = [-1, -0.76, -0.75, -0.13, 0, 0.99, 1]
    assert [bins.get_bin(value) for value in values] == [0, 0, 1, 3, 4, 7, 7]
    assert (bins.get_nr_bin(), bins.get_bin_center(3)) == (8, -0.125)
    assert UniformDiscretizer1D(0, 2.1, 0.3).get_nr_bin() == 7
    assert capsys.readouterr().out == ""
    assert [bins.get_bin(value) for value in (-5, -math.inf, 40, math.inf)] == [0, 0, 7, 7]
    assert capsys.readouterr().out.count("A value is not in [-1.0, 1.0].") == 1


@pytest.mark.parametrize("value, peak", [(0.0, 4), (0.9, 7), (-0.99, 0)])
def test_a_distribution_falls_by_the_factor_from_bin_to_bin(value, peak):
    distribution = UniformDiscretizer1D(-1, 1, 0.25).get_distribution(value)
    expected = np.zeros(12)
    expected[peak : peak + 5] = [0.0025, 0.05, 1, 0.05, 0.0025]
    expected = expected[2:10] / expected[2:10].sum()
    assert distribution.dtype == np.float32
    np.testing.assert_allclose(distribution, expected, rtol=1e-6)


def test_bins_of_several_dimensions():
    bins = UniformDiscretizerND((0, 1, 0.25), (0, 2, 1.0), (-1, 1, 0.5))
    assert (bins.get_nr_bin(), bins.get_nr_bin_nd()) == (32, [4, 2, 4])
    assert (bins.get_bin([0.3, 1.2, -0.2]), bins.get_nd_bin_ids(13)) == (13, [1, 1, 1])
    assert [bins.get_bin(bins.get_bin_center(number)) for number in range(32)] == list(range(32))
