"""Names and signatures of 2017 and of 2018 to 2023 (0.11) are found where their scripts look.

`old_names.txt` has a line for each module; a name with a minus is not there, see
docs/migration.md. What has no counterpart yet (images, most datasets) is not listed.

`old_signatures.txt` has the arguments, methods and properties of each name. An argument must be
accepted by its keyword and at its position, with its default. `old_differences.txt` lists what
differs under its reason, which is the row of docs/migration.md that it begins with, or a
sentence: `x=` is refused as a keyword, `x@2` is not the argument at position 2, `x=1` has another
default, `+x` is required now, `.x` is no method or attribute.
"""

import ast
import importlib
import inspect
import re
from inspect import Parameter
from pathlib import Path

import pytest

import tensorpack
from tests.checks import ROOT
from tests.conftest import HAS_TENSORFLOW

HERE = Path(__file__).parent
WITHOUT_TENSORFLOW = ("tensorpack.utils.", "tensorpack.dataflow.", "tensorpack.RL.")
CALL = re.compile(r"(?:^| )\.?(\w+)((?:\(.*?\))?)(?= \.|$)")  # a name, with arguments or without
# Not by a keyword: several at once, or the scope name of a layer, which old tables leave out.
NAMELESS = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD, Parameter.POSITIONAL_ONLY)
GENERATIONS = {"both": ["2017", "0.11"]}
SPELLINGS = {"NHWC": "channels_last", "SAME": "same", "VALID": "valid"}
SECOND_NAMES = {
    "Callback": "Triggerable",
    "TFEventWriter": "TFSummaryWriter",
    "TensorPrinter": "StepTensorPrinter",
    "TowerFunc": "TowerFuncWrapper",
    "describe_trainable_vars": "describe_model",
    "load_checkpoint_vars": "load_chkpt_vars",
    "save_checkpoint_vars": "save_chkpt_vars",
}


def read(name):
    return (HERE / name).read_text(encoding="utf-8").splitlines()


def read_sections(name):
    """Returns the indented lines of a file, by the line above them that is not."""
    sections = {}
    for line in read(name):
        if not line.startswith(" "):
            lines = sections.setdefault(line, [])
        else:
            lines.append(line.strip())
    return sections


NAMES = read("old_names.txt")
SIGNATURES = read_sections("old_signatures.txt")
DIFFERENCES = read_sections("old_differences.txt")


def import_old(name):
    """Returns a module under its old name, or None."""
    if not HAS_TENSORFLOW and not name.startswith(WITHOUT_TENSORFLOW):
        pytest.skip("needs TensorFlow")
    try:
        return importlib.import_module(name)
    except ImportError as error:
        assert name.startswith(error.name)
        return None


@pytest.mark.parametrize("line", NAMES, ids=lambda line: ":".join(line.split()[:2]))
def test_names_of_old_modules(line):
    _, name, *expected = line.split()
    module = import_old(name)
    found = [each.lstrip("-") for each in expected]
    assert [each if works(module, each) else f"-{each}" for each in found] == expected


def works(module, name):
    """Whether a module has a name, and not only to say where it is called that it is omitted."""
    if name not in ("get_caffe_pb", "load_caffe"):
        return hasattr(module, name)
    with pytest.raises(ImportError, match="load them by SmartInit"):
        getattr(module, name)("model.prototxt", "weights.caffemodel")
    return False


@pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")
def test_second_names():
    for first, second in SECOND_NAMES.items():
        assert getattr(tensorpack, first) is getattr(tensorpack, second)


def test_every_name_is_in_a_test():
    words = set()
    for path in HERE.rglob("*.py"):
        words |= set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    names = {name for line in NAMES for name in line.split()[2:] if not name.startswith("-")}
    assert names - words == set()


def test_data_files_agree():
    signatures = {
        f"{generation} {module}:{CALL.search(names).group(1)}"
        for module, lines in SIGNATURES.items()
        for each, names in (line.split(None, 1) for line in lines)
        for generation in GENERATIONS.get(each, [each])
    }
    assert signatures <= {
        f"{generation} {module}:{name.lstrip('-')}"
        for generation, module, *names in map(str.split, NAMES)
        for name in names
    }
    listed = {line.split()[1].split(":")[0] for lines in DIFFERENCES.values() for line in lines}
    assert listed <= set(SIGNATURES)
    rows = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
    assert [each for each in DIFFERENCES if each.startswith("|") and each not in rows] == []


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_of_old_modules(name):
    module = import_old(name)
    differing = set()
    for line in SIGNATURES[name]:
        generation, names = line.split(None, 1)
        (key, arguments), *members = CALL.findall(names)
        ours = getattr(module, key, None)
        if ours is not None:
            assert not callable(ours) or inspect.getdoc(ours), f"{key} has no docstring"
            found = compare(ours, arguments) + compare_members(ours, members)
            differing |= {f"{generation} {name}:{key} {each}" for each in found}
    assert differing == listed_differences(name)


def listed_differences(module):
    lines = [line.split() for lines in DIFFERENCES.values() for line in lines]
    return {
        f"{generation} {name} {each}"
        for generation, name, *items in lines
        if name.split(":")[0] == module
        for each in items
    }


def compare_members(ours, members):
    found = []
    for name, arguments in members:
        member = inspect.getattr_static(ours, name, None)
        documented = " ".join(each.__doc__ or "" for each in inspect.getmro(ours))
        if member is None and not re.search(rf"Attributes:.*\b{name}\b", documented, re.DOTALL):
            found.append(f".{name}")
        elif arguments:
            bound = inspect.isclass(ours) and not isinstance(member, (staticmethod, classmethod))
            found += [f".{name}:{each}" for each in compare(getattr(ours, name), arguments, bound)]
    return found


def compare(ours, arguments, bound=False):
    """Returns what differs between a function or class and the old arguments."""
    if not arguments:
        return []
    new_names = renamed(ours.__init__ if inspect.isclass(ours) else ours)
    parameters = list(inspect.signature(ours).parameters.values())[bound:]
    by_name = {each.name: each for each in parameters if each.kind not in NAMELESS}
    by_position = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    takes_more = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    takes_any_name = any(each.kind is each.VAR_KEYWORD for each in parameters)
    found, given = [], set()
    for at, old in enumerate(old_parameters(arguments)):
        name = new_names.get(old.name, old.name)
        given |= {name, *by_position[at : at + 1]}
        if name in by_name:
            default = old.empty if old.default is old.empty else by_name[name].default
            if plain(default) != plain(old.default):
                found.append(f"{old.name}={old.default!r}")
        elif not takes_any_name:
            found.append(f"{old.name}=")
        if old.kind is old.POSITIONAL_OR_KEYWORD:
            if by_position[at : at + 1] != [name] and not (takes_more and at >= len(by_position)):
                found.append(f"{old.name}@{at}")
    required = [name for name, each in by_name.items() if each.default is each.empty]
    return found + [f"+{name}" for name in required if name not in given]


def renamed(function):
    """Returns the new names of old keywords that a function and what it wraps translate."""
    names = {}
    while function is not None:
        closure = inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) else {}
        tables = {**getattr(function, "__dict__", {}), **closure}  # of a layer its attribute
        names.update(tables.get("new_names") or tables.get("renaming") or {})
        function = getattr(function, "__wrapped__", None)
    return {old: getattr(new, "name", new) for old, new in names.items()}


def old_parameters(text):
    given = ast.parse(f"def f{text}: pass").body[0].args
    defaults = [None] * (len(given.args) - len(given.defaults)) + given.defaults
    for each, default in zip(given.args, defaults):
        yield Parameter(each.arg, Parameter.POSITIONAL_OR_KEYWORD, default=value_of(default))
    for each, default in zip(given.kwonlyargs, given.kw_defaults):
        yield Parameter(each.arg, Parameter.KEYWORD_ONLY, default=value_of(default))


def value_of(default):
    if default is None:
        return Parameter.empty
    try:
        return ast.literal_eval(default)
    except ValueError:
        return None  # an initialiser or tf.identity, for which ours is None


def plain(default):
    """Returns one of several spellings of the same value."""
    if isinstance(default, (list, tuple)):
        return default[0] if len(set(default)) == 1 else tuple(default)
    return SPELLINGS.get(default, default) if isinstance(default, str) else default
