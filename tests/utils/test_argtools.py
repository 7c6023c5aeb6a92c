"""Tests of `tensorpack.utils.argtools`."""

import gc
import re
import weakref

import numpy as np
import pytest

from tensorpack.utils.argtools import (
    accepts_old_keywords,
    axis_order,
    call_only_once,
    execute_only_once,
    get_data_format,
    log_once,
    map_arg,
    memoized,
    memoized_ignoreargs,
    memoized_method,
    shape2d,
    shape4d,
)


class Counter:
    """Counts how often its methods really run."""

    def __init__(self):
        self.calls = 0

    @memoized_method
    def power(self, base, exponent=2):
        self.calls += 1
        return base**exponent

    @memoized_method
    def nothing(self):
        self.calls += 1

    @call_only_once
    def setup(self):
        self.calls += 1

    @call_only_once
    def fail(self):
        raise KeyError


class Derived(Counter):
    @memoized_method
    def power(self, base, exponent=2):
        return super().power(base, exponent) + 1


def test_map_arg_reaches_positional_keyword_and_default_arguments():
    @map_arg(b=str, rest=list)
    def function(a, b=2, *rest, c=3):
        return a, b, rest, c

    assert function(1) == (1, "2", (), 3)
    assert function(1, 5, 6, c=7) == (1, "5", (6,), 7)
    assert function(a=1, b=None) == (1, "None", (), 3)
    assert function.__name__ == "function"


def test_memoized_computes_once_for_each_value():
    calls = []

    @memoized
    def function(a, b=0):
        calls.append((a, b))
        return a + b

    assert [function(1), function(1), function(1, b=2), function(1, b=3)] == [1, 1, 3, 4]
    assert calls == [(1, 0), (1, 2), (1, 3)]
    assert isinstance(function(1.0), float)


def test_memoized_ignoreargs_keeps_the_first_result():
    function = memoized_ignoreargs(lambda a: a)
    assert [function(None), function(2)] == [None, None]


def test_memoized_method_distinguishes_keyword_values_and_keeps_none():
    counter = Counter()
    assert [counter.power(3, exponent=n) for n in (3, 4, 3)] == [27, 81, 27]
    assert counter.power(3) == 9 and counter.calls == 3
    assert [counter.nothing(), counter.nothing()] == [None, None] and counter.calls == 4


def test_memoized_method_is_per_instance_and_dies_with_it():
    one, derived = Counter(), Derived()  # which calls what it overrides
    assert [one.power(3), derived.power(3), derived.power(3)] == [9, 10, 10]
    assert (one.calls, derived.calls) == (1, 1)
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None


def test_a_second_call_is_an_error_and_a_failed_one_counts():
    counter = Counter()
    counter.setup()
    with pytest.raises(RuntimeError, match=r"Counter.setup\(\) was already called"):
        counter.setup()
    Counter().setup()
    assert counter.calls == 1
    with pytest.raises(KeyError):
        counter.fail()
    with pytest.raises(RuntimeError):
        counter.fail()


def test_log_once_logs_once(capsys):
    for _ in range(3):
        log_once("only once: 100%", "warn")
    assert re.fullmatch(r"\[.*\] WRN only once: 100%\n", capsys.readouterr().out)


def test_execute_only_once_is_per_line():
    first = [execute_only_once() for _ in range(3)]
    second = [execute_only_once() for _ in range(3)]
    assert first == second == [True, False, False]


def test_shape2d():
    for shape in (3, 4), [3, 4], np.array([3, 4]):
        assert shape2d(shape) == [3, 4]
    assert shape2d(3) == shape2d(np.int32(3)) == [3, 3]
    with pytest.raises(ValueError, match="2D shape"):
        shape2d((1, 2, 3))


def test_shape4d():
    assert shape4d(2) == [1, 2, 2, 1]
    assert shape4d((2, 3), data_format="channels_first") == [1, 1, 2, 3]


def test_data_formats():
    spellings = ["NHWC", "channels_last", "NCHW", "channels_first"]
    assert [axis_order(name) for name in spellings] == ["NHWC", "NHWC", "NCHW", "NCHW"]
    for options in {"keras_mode": False}, {"tfmode": False}:  # 0.9.4 to 0.11, and 0.8 to 0.9.1
        found = [get_data_format(name, **options) for name in spellings]
        assert found == ["NHWC", "NHWC", "NCHW", "NCHW"]
    assert [get_data_format(name) for name in spellings] == 2 * [spellings[1]] + 2 * [spellings[3]]
    with pytest.raises(ValueError, match="'NWHC'"):
        get_data_format("NWHC", True)
    spellings = ["NDHWC", "channels_last", "NCDHW", "channels_first"]
    volumes = [axis_order(name, dims=3) for name in spellings]
    assert volumes == ["NDHWC", "NDHWC", "NCDHW", "NCDHW"]


def test_old_keywords_are_passed_on_by_their_new_name():
    @accepts_old_keywords(nr="num")
    def repeat(text, num=1):
        return text * num

    assert [repeat("a", nr=2), repeat("a", num=2), repeat("a", 2), repeat("a")] == [
        *["aa"] * 3,
        "a",
    ]
    with pytest.raises(TypeError, match=r"repeat\(\) got both 'nr' and 'num'.* Use 'num'"):
        repeat("a", nr=2, num=2)
