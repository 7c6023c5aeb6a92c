"""Modules answer for names that scripts look for in them and that are public elsewhere."""

import importlib

import pytest

import tensorpack
from tests.conftest import HAS_TENSORFLOW
from tests.test_import_cost import run_probe

needs_tensorflow = pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")


@pytest.mark.parametrize(
    "path, name",
    [
        ("dataflow", "BatchData"),
        ("dataflow.prefetch", "PrefetchData"),
        ("utils.utils", "get_rng"),
        pytest.param("models", "Conv2D", marks=needs_tensorflow),
        pytest.param("callbacks.stats", "SendStat", marks=needs_tensorflow),
    ],
)
def test_a_script_collects_names_by_dir(path, name):
    module = importlib.import_module(f"tensorpack.{path}")
    attributes = {attribute: getattr(module, attribute) for attribute in dir(module)}
    assert callable(attributes[name])


@pytest.mark.parametrize("name", ["MapDataComponet", "_HOMES", "__wrapped__"])
def test_a_name_that_is_nowhere_is_an_error(name):
    with pytest.raises(AttributeError, match=f"'tensorpack.dataflow.image' has no .*{name}"):
        getattr(tensorpack.dataflow.image, name)
    with pytest.raises(ImportError, match="cannot import name 'MapDataComponet'"):
        from tensorpack.dataflow.image import MapDataComponet  # noqa: F401


def test_a_module_of_a_package_is_meant_before_another_of_its_name():
    assert tensorpack.dataflow.serialize.__name__ == "tensorpack.dataflow.serialize"
    from tensorpack.dataflow import serialize

    assert serialize.LMDBSerializer is tensorpack.dataflow.LMDBSerializer
    assert serialize.loads is tensorpack.utils.serialize.loads


def test_star_imports_of_old_addresses():
    names = {}
    exec("from tensorpack.dataflow.common import *", names)
    assert names["BatchData"] is tensorpack.dataflow.BatchData
    if HAS_TENSORFLOW:
        exec("from tensorpack.graph_builder.input_source import *", names)
        assert names["QueueInput"] is tensorpack.QueueInput


@needs_tensorflow
def test_a_function_hides_the_module_of_its_name():
    done = run_probe(
        "import tensorpack\n"
        "assert tensorpack.argscope.__name__ == 'argscope'\n"
        "import tensorpack.tfutils.argscope\n"
        "from tensorpack.tfutils import argscope\n"
        "from tensorpack.tfutils.argscope import argscope as same\n"
        "assert argscope is same and callable(argscope)\n"
        "assert tensorpack.tfutils.argscope is argscope is tensorpack.argscope"
    )
    assert done.returncode == 0, done.stdout
