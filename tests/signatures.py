"""Renders what is public of a name: arguments with defaults, members of a class; from the source.

Nothing is imported, so the text is the same with each TensorFlow and Python. A default that is a
constant of the module is rendered as its value. Members that a class has from another public class
are listed there alone.
"""

import ast
import functools
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from tests import checks

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_FIELDS = ("NamedTuple", "dataclass")  # makers of classes whose annotations are arguments
_OPERATORS = {
    ast.Add: "+",
    ast.Div: "/",
    ast.LShift: "<<",
    ast.Mult: "*",
    ast.Pow: "**",
    ast.Sub: "-",
    ast.UAdd: "+",
    ast.USub: "-",
}


class Defined(NamedTuple):
    """A top-level statement that defines a name, and the file that it is in."""

    path: Path
    node: Any  # of a function, a class, or the value of an assignment


def all_signatures() -> str:
    """Returns a text with the signature of every public name, in the order of their homes."""
    lines = []
    for name, folder in sorted(_public_names().items(), key=lambda item: item[::-1]):
        found = find(checks.PACKAGE / folder / "__init__.py", name)
        if found is not None:  # neither a module nor TensorFlow's
            lines += rendered(f"{folder.replace('/', '.')}.{name}", found)
    return "".join(f"{line}\n" for line in lines)


def rendered(shown: str, found: Defined) -> List[str]:
    """Returns the lines of a name."""
    if isinstance(found.node, _FUNCTIONS):
        return [shown + arguments(found.path, found.node)]
    if isinstance(found.node, ast.ClassDef):
        return [shown + _constructor(found), *_members(found)]
    return [f"{shown} = {expression(found.path, found.node)}"]


def find(path: Path, name: str) -> Optional[Defined]:
    """Returns where a name of a file is defined; None if it is another's, or a module."""
    found = _definitions(path).get(name)
    if not isinstance(found, ast.ImportFrom):
        return None if found is None else Defined(path, found)
    (alias,) = [each for each in found.names if (each.asname or each.name) == name]
    for imported in checks.imported_names(found, path):
        parts = imported.split(".")
        if parts[0] == "tensorpack" and parts[-1] == alias.name:
            module = checks.ROOT.joinpath(*parts[:-1])
            for source in (module.with_suffix(".py"), module / "__init__.py"):
                if source.exists() and source != path:
                    return find(source, alias.name)
    return None


@functools.lru_cache(maxsize=None)
def _definitions(path: Path) -> Dict[str, Any]:
    """What the top-level statements of a file define, also those under a condition, by name."""
    found: Dict[str, Any] = {}
    for node in _statements(ast.parse(path.read_text(encoding="utf-8")).body):
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            found.setdefault(node.name, node)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found.setdefault(alias.asname or alias.name, node)
        else:
            found.update({name: value for name, value in _assigned(node) if value is not None})
    for name, module in checks.lazy_names(path).items():
        level = int(not module.startswith("tensorpack."))
        found[name] = ast.ImportFrom(module, [ast.alias(name, None)], level)
    return found


def _statements(body: List[Any]) -> Iterator[Any]:
    for node in body:
        if isinstance(node, (ast.If, ast.Try)):
            yield from _statements(node.body)
            yield from _statements(node.orelse)
        else:
            yield node


def _assigned(node: Any) -> Iterator[Any]:
    """Yields pairs of the name and the value of an assignment; without one the value is None."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value


def arguments(path: Path, function: Any, bound: bool = False) -> str:
    """Returns the arguments of a function, without annotations; `bound` leaves out the first."""
    given = function.args
    names = [each.arg for each in given.args]
    defaults = [None] * (len(names) - len(given.defaults)) + list(given.defaults)
    texts = [_argument(path, *each) for each in zip(names, defaults)][bound:]
    if given.vararg is not None:
        texts.append("*" + given.vararg.arg)
    elif given.kwonlyargs:
        texts.append("*")
    texts += [
        _argument(path, e.arg, value) for e, value in zip(given.kwonlyargs, given.kw_defaults)
    ]
    if given.kwarg is not None:
        texts.append("**" + given.kwarg.arg)
    return f"({', '.join(texts)})"


def _argument(path: Path, name: str, default: Any) -> str:
    return name if default is None else f"{name}={expression(path, default)}"


@functools.lru_cache(maxsize=None)
def _public_names() -> Dict[str, str]:
    """Name -> the folder whose `__init__.py` gives it."""
    names = {name: home for name, home in checks.public_homes().items() if home != "compat"}
    for facade in checks.public_facades():
        for name in checks.declared_names(checks.PACKAGE / facade / "__init__.py"):
            names.setdefault(name, facade)
    return names


def _lineage(found: Defined) -> Iterator[Defined]:
    """Yields a class, and the bases of this library that are not public themselves."""
    yield found
    for base in found.node.bases:
        parent = find(found.path, base.id) if isinstance(base, ast.Name) else None
        if parent is not None and isinstance(parent.node, ast.ClassDef):
            if parent.node.name not in _public_names():
                yield from _lineage(parent)


def _constructor(found: Defined) -> str:
    """Returns the arguments of a class; "(...)" if they are those of a base that is not ours."""
    for each in _lineage(found):
        by_name = {node.name: node for node in each.node.body if isinstance(node, _FUNCTIONS)}
        for name in ("__init__", "__new__"):
            if name in by_name:
                return arguments(each.path, by_name[name], bound=True)
        makers = [getattr(base, "id", None) for base in [*each.node.bases, *_decorators(each.node)]]
        if set(makers) & set(_FIELDS):
            fields = [pair for node in each.node.body for pair in _fields(node)]
            return f"({', '.join(_argument(each.path, *pair) for pair in fields)})"
    bases = [getattr(base, "id", None) or getattr(base, "attr", "?") for base in found.node.bases]
    return f"({', '.join(bases)}: ...)" if bases else "()"


def _fields(node: Any) -> Iterator[Any]:
    return _assigned(node) if isinstance(node, ast.AnnAssign) else iter(())


def _decorators(node: Any) -> List[Any]:
    return [getattr(each, "func", each) for each in node.decorator_list]


def _members(found: Defined) -> List[str]:
    lines: Dict[str, str] = {}
    for path, node in _lineage(found):
        for name, text in _own_members(path, node):
            if not name.startswith("_"):
                lines.setdefault(name, f"  .{name}{text}")
    return [lines[name] for name in sorted(lines)]


def _own_members(path: Path, owner: Any) -> Iterator[Any]:
    for node in owner.body:
        if isinstance(node, _FUNCTIONS):
            kinds = {getattr(each, "id", getattr(each, "attr", "")) for each in _decorators(node)}
            if kinds & {"property", "setter"}:
                yield node.name, ""
            else:
                yield node.name, arguments(path, node, bound="staticmethod" not in kinds)
        else:
            for name, value in _assigned(node):
                if value is not None:
                    yield name, f" = {expression(path, value)}"


def expression(path: Path, node: Any) -> str:
    """Returns an expression in one spelling; a constant of the module as its value."""
    try:
        value = ast.literal_eval(node)
    except (TypeError, ValueError):
        return _composed(path, node)
    return repr(sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value)


def _composed(path: Path, node: Any) -> str:
    def text(part: Any) -> str:
        return expression(path, part)

    if isinstance(node, ast.Name):
        constant = find(path, node.id)
        known = constant is not None and not isinstance(constant.node, (*_FUNCTIONS, ast.ClassDef))
        return expression(*constant) if known else node.id
    if isinstance(node, ast.Attribute):
        return f"{text(node.value)}.{node.attr}"
    if isinstance(node, ast.Call):
        named = [f"{each.arg or '**'}={text(each.value)}" for each in node.keywords]
        return f"{text(node.func)}({', '.join([*map(text, node.args), *named])})"
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return f"{type(node).__name__.lower()}({', '.join(map(text, node.elts))})"
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return f"({text(node.left)} {_OPERATORS[type(node.op)]} {text(node.right)})"
    if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)] + text(node.operand)
    return f"<{type(node).__name__}>"
