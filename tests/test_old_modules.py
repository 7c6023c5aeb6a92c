"""Modules answer for names that scripts look for in them and that are public elsewhere."""

import importlib

import pytest

import tensorpack
from tests.conftest import HAS_TENSORFLOW
from tests.test_import_cost import modules_after, run_probe

needs_tensorflow = pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")


def test_a_name_is_found_where_it_was_imported():
    from tensorpack.dataflow.dataset.mnist import RNGDataFlow
    from tensorpack.dataflow.format import dumps
    from tensorpack.dataflow.image import MapDataComponent
    from tensorpack.dataflow.imgaug.crop import TransformAugmentorBase
    from tensorpack.utils.fs import logger
    from tensorpack.utils.serialize import dumps as expected

    assert MapDataComponent is tensorpack.dataflow.MapDataComponent
    assert RNGDataFlow is tensorpack.dataflow.RNGDataFlow
    assert TransformAugmentorBase is tensorpack.dataflow.imgaug.base.TransformAugmentorBase
    assert (logger, dumps) == (tensorpack.utils.logger, expected)


@needs_tensorflow
def test_a_name_is_found_in_modules_that_need_tensorflow():
    from tensorpack.tfutils.common import tfv1
    from tensorpack.train.tower import get_current_tower_context

    assert tfv1 is tensorpack.tfv1
    assert get_current_tower_context is tensorpack.get_current_tower_context
    # a package has a function of this name, which hides the module
    argscope = importlib.import_module("tensorpack.tfutils.argscope")
    assert argscope.get_current_tower_context is get_current_tower_context


@pytest.mark.parametrize(
    "path, name",
    [
        ("dataflow", "BatchData"),
        ("dataflow.prefetch", "PrefetchData"),
        ("dataflow.image", "AugmentImageComponent"),
        ("utils.utils", "get_rng"),
        pytest.param("models", "Conv2D", marks=needs_tensorflow),
        pytest.param("models.image_sample", "ImageSample", marks=needs_tensorflow),
        pytest.param("callbacks.stats", "SendStat", marks=needs_tensorflow),
    ],
)
def test_a_script_collects_names_by_dir(path, name):
    module = importlib.import_module(f"tensorpack.{path}")
    found = {each: getattr(module, each) for each in dir(module)}
    assert callable(found[name])


@pytest.mark.parametrize("name", ["MapDataComponet", "_HOMES", "__wrapped__"])
def test_a_name_that_is_nowhere_is_an_error(name):
    with pytest.raises(AttributeError, match=f"'tensorpack.dataflow.image' has no .*{name}"):
        getattr(tensorpack.dataflow.image, name)
    with pytest.raises(ImportError, match="cannot import name 'MapDataComponet'"):
        from tensorpack.dataflow.image import MapDataComponet  # noqa: F401


def test_modules_that_never_held_names_of_others_have_none():
    assert not hasattr(importlib.import_module("tensorpack.launch._hosts"), "BatchData")


def test_what_works_without_tensorflow_finds_no_name_that_needs_it():
    assert not hasattr(tensorpack.dataflow.image, "TrainConfig")
    assert not hasattr(tensorpack.utils, "Conv2D")


def test_a_module_of_a_package_is_meant_before_another_of_its_name():
    assert tensorpack.dataflow.serialize.__name__ == "tensorpack.dataflow.serialize"
    from tensorpack.dataflow import serialize

    assert serialize.LMDBSerializer is tensorpack.dataflow.LMDBSerializer
    assert serialize.loads is tensorpack.utils.serialize.loads


def test_star_imports_of_old_addresses():
    found = {}
    exec("from tensorpack.dataflow.common import *", found)
    assert found["BatchData"] is tensorpack.dataflow.BatchData


@needs_tensorflow
def test_star_imports_of_old_addresses_of_another_package():
    found = {}
    exec("from tensorpack.graph_builder.input_source import *", found)
    assert found["QueueInput"] is tensorpack.QueueInput


def test_nothing_is_loaded_for_a_name_that_a_module_has():
    loaded = modules_after("from tensorpack.utils.naming import TOWER_FREEZE_KEYS")
    assert {each for each in loaded if each.startswith("tensorpack.")} == {
        "tensorpack._old_modules",
        "tensorpack._public_names",
        "tensorpack._version",
        "tensorpack.utils",
        "tensorpack.utils.naming",
    }


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
