import sys
import types

import pytest

from tensorpack.utils.legacy_names import give_both_names, names_from


class Base:
    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        give_both_names(cls, "new", "old")

    def new(self):
        return "base"

    old = new


class ByOldName(Base):
    def old(self):
        return "old, " + super().old()


class ByNewName(ByOldName):
    def new(self):
        return "new, " + super().new()


def test_a_method_has_both_names_whichever_is_written():
    assert ByOldName().new() == ByOldName().old() == "old, base"
    assert ByNewName().new() == ByNewName().old() == "new, old, base"


def test_a_module_gives_what_others_define(monkeypatch):
    home = types.ModuleType("package.home")
    home.Thing, home.hidden, home.__all__ = object(), object(), ["Thing"]
    monkeypatch.setitem(sys.modules, "package", types.ModuleType("package"))
    monkeypatch.setitem(sys.modules, "package.home", home)
    find = names_from("package.address", "home")
    assert find("Thing") is home.Thing
    for name in "hidden", "__path__":
        with pytest.raises(AttributeError, match=f"'package.address' has no attribute '{name}'"):
            find(name)
