"""What is new has its place: a public name, and tests that inherit the contract of its kind."""

import ast
import functools
import importlib
import pkgutil

import pytest

from tensorpack.callbacks import Callback
from tensorpack.dataflow import DataFlow
from tensorpack.dataflow.imgaug import ImageAugmentor
from tensorpack.input_source import InputSource
from tensorpack.models import registry
from tensorpack.RL import Player
from tests.checks import ROOT

TESTS = ROOT / "tests"
PACKAGES = ("callbacks", "dataflow", "dataflow.dataset", "dataflow.imgaug", "input_source", "RL")

CONTRACTS = {
    Callback: "CallbackContract",
    DataFlow: "DataFlowContract",
    ImageAugmentor: "AugmentorContract",
    InputSource: "InputSourceContract",
    Player: "PlayerContract",
}

# What modules share with each other, and scripts are not told of.
NOT_FOR_USERS = {
    *(
        "BestValue",
        "CombinedDataFlow",
        "LastValues",
        "StartQueueRunners",
        "ResumableDataFlow",
        "ScalarWatcher",
        "DatapointMap",
        "RandomMap",
    ),
    *("TransformAugmentorBase", "FixedCrop", "PositionNotKept", "EnqueueCallback"),
}

# Classes that no test class of a contract makes.
EXCEPTIONS = {
    Callback: {
        "HyperParamSetter": "is abstract",
        "InferenceRunnerBase": "is abstract",
        "Inferencer": "is called by an InferenceRunner alone, as are those below it",
        "BinaryClassificationStats": "is an Inferencer",
        "ClassificationError": "is an Inferencer",
        "TFLocalCLIDebugHook": "is a HookToCallback that needs a terminal",
    },
    DataFlow: {
        "BSDS500": "is a DataFromList of what its files have",
        "Caltech101Silhouettes": "is a DataFromList of what its files have",
        "Cifar100": "is a Cifar10 of other files",
        "CifarBase": "is what Cifar10 and Cifar100 are",
        "FashionMnist": "is a Mnist of other files",
        "MultiProcessRunnerZMQ": "is a MultiProcessRunner with other arguments",
        "Places365Standard": "is a DataFromList of images",
        "PrefetchOnGPUs": "is a MultiProcessRunner with other arguments",
        "TinyImageNet": "is a DataFromList of images",
        "VisualQA": "is a DataFromList of what its files have",
    },
    InputSource: {
        "InputSource": "is abstract",
        "FeedfreeInput": "is abstract",
        "DataParallelFeedInput": "gives tensors to its towers alone; has an InputStateContract",
        "StagingInputWrapper": "is a StagingInput with other arguments",
        "ZMQInput": "is a QueueInput of a RemoteDataZMQ",
    },
}


def new_names(package):
    """Names of what the modules of a package define, of these kinds or as a layer."""
    folder = importlib.import_module(f"tensorpack.{package}").__path__[0]
    for each in pkgutil.iter_modules([folder], f"tensorpack.{package}."):
        if each.ispkg or each.name.rpartition(".")[2].startswith("_"):
            continue
        module = importlib.import_module(each.name)
        for name, thing in vars(module).items():
            is_class = isinstance(thing, type) and issubclass(thing, tuple(CONTRACTS))
            is_layer = thing is registry.get_registered_layer(name) is not None
            if (is_class and thing.__module__ == each.name) or is_layer:
                yield each.name, name


@pytest.mark.parametrize("package", [*PACKAGES, "callbacks.monitors", "models"])
def test_what_is_new_has_a_public_name(package):
    found = list(new_names(package))
    package = package.replace(".monitors", "")  # which has no table of its own
    table = importlib.import_module(f"tensorpack.{package}").__all__
    for module, name in found:
        assert name.startswith("_") or name in NOT_FOR_USERS.union(table), (
            f"{module} defines {name}, which tensorpack.{package} does not have: add it to _NAMES "
            f"in tensorpack/{package.replace('.', '/')}/__init__.py and run scripts/public_names; "
            "docs/design/map.md has the next steps. If it is not for users, its name begins with _."
        )


def public_classes(base):
    """Names of the public classes that are a `base`."""
    modules = [importlib.import_module(f"tensorpack.{each}") for each in PACKAGES]
    found = [getattr(module, name) for module in modules for name in module.__all__]
    return {each.__name__ for each in found if isinstance(each, type) and issubclass(each, base)}


@functools.lru_cache(maxsize=None)
def contents(path):
    """What a test file defines: name -> node; and what it imports: name -> (file, name there)."""
    defined, imported = {}, {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            defined[node.name] = node
        elif isinstance(node, ast.Assign):
            defined.update({each.id: node for each in node.targets if isinstance(each, ast.Name)})
        elif isinstance(node, ast.ImportFrom):
            folder = path.parent if node.level else ROOT
            file = folder.joinpath(*str(node.module).split(".")).with_suffix(".py")
            if TESTS in file.parents and file.exists():
                imported.update(
                    {each.asname or each.name: (file, each.name) for each in node.names}
                )
    return defined, imported


@functools.lru_cache(maxsize=None)
def names_in(node):
    """The names that a definition uses, but not those in the tests of a class."""
    names = {node.id} if isinstance(node, ast.Name) else set()
    names |= {node.attr} if isinstance(node, ast.Attribute) else set()
    for child in ast.iter_child_nodes(node):
        if not str(getattr(child, "name", "")).startswith("test_"):
            names |= names_in(child)
    return names


def names_behind(path, node):
    """The names that a definition uses, and those that what it uses of the tests uses."""
    todo, found = [(path, node)], set()
    while todo:
        path, node = todo.pop()
        for name in names_in(node) - found:
            found.add(name)
            defined, imported = contents(path)
            file, original = imported.get(name, (path, name))
            file, original = contents(file)[1].get(original, (file, original))
            if original in contents(file)[0]:
                todo.append((file, contents(file)[0][original]))
    return found


@pytest.fixture(scope="module")
def behind_test_classes():
    """The names behind each test class of any file."""
    paths = sorted(TESTS.rglob("test_*.py"))
    return [
        names_behind(path, node)
        for path in paths
        if "ontract" in path.read_text(encoding="utf-8")
        for name, node in contents(path)[0].items()
        if name.startswith("Test")
    ]


@pytest.mark.parametrize("base", CONTRACTS, ids=lambda base: base.__name__)
def test_each_public_class_has_its_contract(base, behind_test_classes):
    contract, excepted = CONTRACTS[base], set(EXCEPTIONS.get(base, ()))
    tested = set().union(*(names for names in behind_test_classes if contract in names))
    missing = public_classes(base) - tested - excepted
    assert not missing, (
        f"no test class that inherits {contract} makes {sorted(missing)}: write one as "
        "docs/design/map.md shows, in the file of tests/ that mirrors the module."
    )
    assert not excepted & tested, f"has a test class, so is no exception: {excepted & tested}"
    assert excepted <= public_classes(base)
