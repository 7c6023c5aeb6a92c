"""`globalns` keeps what it was given, by any module."""

import argparse

import pytest

from tensorpack.utils.of_2017.globvars import GlobalNS, globalns, use_global_argument


@pytest.fixture(autouse=True)
def empty_namespace():
    yield
    vars(globalns).clear()


def test_arguments_are_attributes_beside_those_that_were_there():
    globalns.folder, globalns.epochs = "a", 1
    use_global_argument(argparse.Namespace(epochs=5))
    assert vars(globalns) == {"folder": "a", "epochs": 5}


def test_only_parsed_arguments_are_taken():
    with pytest.raises(TypeError, match="must be a Namespace, what parse_args.* got dict"):
        use_global_argument({"epochs": 5})


def test_a_namespace_of_a_script():
    assert isinstance(globalns, GlobalNS)
    own = GlobalNS(epochs=1)
    own.use_argument(argparse.Namespace(folder="a"))
    assert (own.epochs, own.folder, vars(globalns)) == (1, "a", {})
