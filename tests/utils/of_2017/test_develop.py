"""Warnings of what is deprecated, and what stands for a missing dependency."""

import pickle
import sys
import types

import pytest

from tensorpack.utils.of_2017 import develop


@pytest.fixture(autouse=True)
def forget_warnings():
    yield
    develop._warnings.clear()


def warnings_in(capsys):
    return [line.split("[Deprecated] ")[1] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (("f", "Use g.", "2031-01-02"), "f will be deprecated after 2031-01-02. Use g."),
        (("f", "Use g."), "f was deprecated. Use g."),
        (("f",), "f was deprecated."),
        (("", "Use g."), "Use g."),
        (("", "Use g.", "2031-01-02"), "Use g. Legacy period ends after 2031-01-02"),
    ],
)
def test_what_a_warning_says(arguments, expected, capsys):
    develop.log_deprecated(*arguments)
    assert warnings_in(capsys) == [expected]


def test_a_deprecated_function_warns_as_often_as_it_may_and_works(capsys):
    @develop.deprecated("Use g.", max_num_warnings=2)
    def f(x, y=1):
        """Adds."""
        return x + y

    assert [f(1), f(1, y=5), f(3)] == [2, 6, 4]
    assert (f.__name__, f.__doc__) == ("f", "Adds.")
    output = capsys.readouterr().out
    assert output.count("[Deprecated] f was deprecated. Use g.") == 2


def test_what_stands_for_a_class_or_a_function_names_the_dependency():
    text = "Cannot import 'lmdb,zmq', therefore 'Thing' is not available"
    Thing = develop.create_dummy_class("Thing", ["lmdb", "zmq"])

    class Derived(Thing):
        pass

    for make in (Thing, Derived, develop.create_dummy_func("Thing", ["lmdb", "zmq"])):
        with pytest.raises(ImportError, match=text):
            make(1, x=2)
    with pytest.raises(AttributeError, match=text):
        Thing.save  # noqa: B018
    with pytest.raises(ImportError, match="'lmdb', therefore 'f'"):
        develop.create_dummy_func("f", "lmdb")()


def test_whether_documentation_is_built(monkeypatch):
    monkeypatch.delenv("READTHEDOCS", raising=False)
    monkeypatch.delenv("DOC_BUILDING", raising=False)
    assert not develop.building_rtfd()
    monkeypatch.setenv("READTHEDOCS", "True")
    assert develop.building_rtfd()


def test_a_module_is_imported_when_it_is_used():
    used = {}
    used["colours"] = develop.LazyLoader("colours", used, "colorsys")
    assert used["colours"].__name__ == "colorsys"
    assert used["colours"].rgb_to_hls(0.0, 0.0, 0.0) == (0.0, 0.0, 0.0)
    assert used["colours"] is sys.modules["colorsys"]
    missing = develop.LazyLoader("missing", used, "no_such_module")
    with pytest.raises(ImportError, match="no_such_module"):
        assert missing.name


def test_what_the_old_documentation_left_out_is_unchanged():
    @develop.HIDE_DOC
    def function():
        return 1

    assert function() == 1


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
