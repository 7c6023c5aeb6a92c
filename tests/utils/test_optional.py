"""Tests of `tensorpack.utils.optional`."""

import json
import re
import sys
import types

import pytest

from tensorpack.utils import optional
from tensorpack.utils.optional import Lazy, require
from tests.checks import ROOT


def test_an_installed_module_is_returned():
    assert require("json") is json
    assert require("json.decoder") is json.decoder


@pytest.mark.parametrize(
    "module, package, says",
    [
        ("no_such_module.part", None, "no_such_module, which is not installed: no_such_module"),
        ("no_such_module", "its-package", "no_such_module, which is not installed: its-package"),
        ("json.part.of_it", None, "json.part, which the installed json lacks: json"),
    ],
)
def test_a_missing_module_names_the_package(module, package, says):
    with pytest.raises(ModuleNotFoundError) as caught:
        require(module, package)
    assert str(caught.value) == f"This needs {says}".replace(": ", ": pip install ")
    assert says.startswith(f"{caught.value.name},")


def test_the_versions_of_tensorflow_are_those_of_the_extra():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    packages = [each.strip("'") for each in optional.TENSORFLOW.split()]
    packages.append(optional.TENSORFLOW_GPU.split()[0].strip("'"))
    comparison = "<" if sys.version_info < (3, 8) else ">="
    for each in packages:
        assert f"\"{each}; python_version {comparison} '3.8'" in text


@pytest.mark.skipif(sys.version_info < (3, 10), reason="nothing says what a package has")
def test_what_an_error_says_to_install_has_the_module():
    from importlib.metadata import packages_distributions

    asked = re.compile(r'\brequire\("(\w+)[\w.]*"(?:, "([\w-]+)")?\)')
    sources = (path.read_text("utf-8") for path in (ROOT / "tensorpack").rglob("*.py"))
    found = {each for source in sources for each in asked.findall(source)}
    installed = packages_distributions()
    for module, package in found - {("tensorflow", "")}:  # it names two, with versions
        package = package or optional._PACKAGES.get(module, module)
        packages = [each.lower().replace("_", "-") for each in installed.get(module, [package])]
        alike = {"opencv-python": "opencv-python-headless"}
        assert alike.get(package, package).replace("_", "-") in packages, module


def test_an_error_inside_a_module_comes_through(tmp_path, monkeypatch):
    (tmp_path / "broken_inside.py").write_text("import no_such_module_either\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError) as caught:
        require("broken_inside")
    assert caught.value.name == "no_such_module_either"


def test_a_lazy_module_is_loaded_when_it_is_used(monkeypatch):
    module = types.ModuleType("lent_for_a_test")
    module.value = 1
    lazy, missing = Lazy("lent_for_a_test"), Lazy("no_such_module")
    assert not hasattr(lazy, "__wrapped__")
    monkeypatch.setitem(sys.modules, "lent_for_a_test", module)
    assert lazy.value == 1
    module.value = 2
    assert lazy.value == 2 and lazy.__name__ == "lent_for_a_test"
    with pytest.raises(AttributeError, match="other"):
        lazy.other  # noqa: B018
    with pytest.raises(ImportError, match=r"needs no_such_module, .*pip install no_such_module$"):
        missing.value  # noqa: B018
