"""`globalns` keeps what it was given, by any module."""

import argparse

from tensorpack.utils.of_2017.globvars import GlobalNS, globalns, use_global_argument


def test_arguments_are_attributes_beside_those_that_were_there(monkeypatch):
    assert isinstance(globalns, GlobalNS)
    for name in "folder", "epochs":
        monkeypatch.setattr(globalns, name, "a", raising=False)
    use_global_argument(argparse.Namespace(epochs=5))
    assert vars(globalns) == {"folder": "a", "epochs": 5}
