"""`__all__` is sorted, complete and resolvable, and equal to the recorded list of the API.

Modules that scripts of earlier releases import from have one as well, most of them by the table of
their package; what the other modules define is public where that table lists it.

A name is added to or taken from the API on purpose: run `scripts/public_names`, look at what it
changed in `tests/public_names.txt`, and commit that with the change. The same holds for arguments,
defaults and the members of classes, in `tests/public_signatures.txt`.
"""

import ast
import functools
import importlib
import os
import subprocess
import sys

import pytest

import tensorpack
from tensorpack import _public_names
from tensorpack.utils import optional
from tests import checks
from tests.conftest import HAS_TENSORFLOW
from tests.processes import run_python


def has_names(path):
    """Whether a package, or a module of earlier releases, has more than a docstring."""
    names = path.relative_to(checks.PACKAGE).parts
    if any(name.startswith("_") and name != "__init__.py" for name in names):
        return False
    listed = path.name == "__init__.py" or checks.dotted_name(path) in old_addresses()
    return listed and len(ast.parse(path.read_text(encoding="utf-8")).body) > 1


@functools.lru_cache(maxsize=None)
def old_addresses():
    texts = [
        (checks.ROOT / "tests" / name).read_text() for name in ("old_names.txt", "old_releases.txt")
    ]
    words = {word for text in texts for line in text.splitlines() for word in line.split()[:2]}
    return {f"tensorpack.{word}" for word in words} | words


MODULES = [
    path
    for path in checks.module_files()
    if path != checks.PACKAGE / "__init__.py" and has_names(path)
]
WITHOUT_TENSORFLOW = {"utils", "command", "dataflow", "RL", "runs", "__main__", "_version"}


def module_id(path):
    return str(path.relative_to(checks.PACKAGE))


def test_names_are_sorted_and_unique():
    names = {module_id(path): checks.declared_names(path) for path in MODULES}
    wrong = {module: each for module, each in names.items() if each != sorted(set(each))}
    assert wrong == {}


def test_names_are_complete():
    missing = {}
    for path in MODULES:
        defined = checks.defined_names(path)
        if path.name == "__init__.py":
            defined |= checks.reexported_names(path)
        missing[module_id(path)] = sorted(defined - set(checks.declared_names(path)))
    missing = {module: names for module, names in missing.items() if names}
    assert missing == {}, "neither in `__all__` or its table nor named with an underscore"


def test_names_resolve():
    paths = [
        each for each in MODULES if HAS_TENSORFLOW or checks.part_of(each) in WITHOUT_TENSORFLOW
    ]
    missing = []
    for path in paths:
        module = importlib.import_module(checks.dotted_name(path))
        names = checks.declared_names(path)
        missing += [f"{module.__name__}.{name}" for name in names if not hasattr(module, name)]
    assert len(paths) > 30 and missing == []


def test_the_root_has_the_names_of_all_packages():
    assert _public_names.HOMES == checks.public_homes(), "run scripts/public_names"
    assert _public_names.MODULES == checks.public_modules(), "run scripts/public_names"
    expected = {"__version__", *checks.public_homes(), *checks.public_modules()}
    assert tensorpack.__all__ == sorted(expected)


def test_the_names_are_the_recorded_ones():
    script = checks.ROOT / "scripts" / "public_names"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], stdout=subprocess.PIPE, text=True
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")
def test_help_on_making_an_object_of_ours_is_not_that_of_tensorflow():
    wrong = []
    for name in _public_names.HOMES:
        cls = getattr(tensorpack, name)
        makers = [each for each in getattr(cls, "__mro__", ()) if "__init__" in vars(each)]
        if makers and is_ours(makers[0]):
            described = [each for each in makers if each.__init__.__doc__]
            wrong += [name] * described[0].__module__.startswith("tensorflow")
    assert wrong == []


def is_ours(cls):
    return cls.__module__.partition(".")[0] == "tensorpack"


@pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")
def test_a_name_is_the_same_object_wherever_it_is_public():
    for package in checks.packages():
        module = importlib.import_module(f"tensorpack.{package}")
        for name in module.__all__:
            assert getattr(module, name) is getattr(tensorpack, name), f"{package}.{name}"


ASKS = """
import sys

class Hides:
    def find_spec(name, path, target=None):
        if name == "tensorflow":
            raise ModuleNotFoundError(name=name)

if sys.argv[1] == "none":
    sys.meta_path.insert(0, Hides)
for statement in sys.argv[2:]:
    try:
        exec(statement)
    except ModuleNotFoundError as error:
        print(error)
"""


@pytest.mark.parametrize(
    "found, says",
    [
        ("none", "This needs tensorflow, which is not installed: pip install "),
        ("old", "This needs tensorflow.compat, which the installed tensorflow lacks: pip install "),
    ],
)
def test_without_tensorflow_each_address_names_the_same_next_move(found, says, tmp_path):
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("__version__ = '1.4.0'\n")
    asks = [
        "from tensorpack import ModelSaver",
        "from tensorpack.callbacks import ModelSaver",
        "from tensorpack.train import TrainConfig",
        "from tensorpack.tfutils import SaverRestore",
        "from tensorpack.compat import tfv1",
    ]
    path = os.pathsep.join([str(tmp_path), str(checks.ROOT)])
    done = run_python("-c", ASKS, found, *asks, env={"PYTHONPATH": path}, text=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(asks) and {*lines} == {f"{says}{optional._PACKAGES['tensorflow']}"}
