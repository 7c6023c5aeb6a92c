"""What the architecture tests ask of the source; reads files, imports nothing of ours."""

import ast
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tensorpack"

# The import table: a module imports from lower rows, or from its own package.
LAYERS = [
    "utils",
    "runs",
    "dataflow launch report",
    "RL",
    "compat",
    "tfutils",
    "models input_source",
    "graph_builder",
    "callbacks",
    "predict",
    "train",
    "_addresses command contrib tf1",
]
RANK = {name: row for row, names in enumerate(LAYERS) for name in names.split()}

# Files that belong to the root module: `python -m tensorpack`, and what `__init__` needs.
OF_THE_ROOT = {"__init__", "__main__", "_old_modules", "_public_names"}

# Packages that are only run, by `python -m`: they have no public names.
PROGRAMS = {"command", "launch", "tf1"}

# Modules that old scripts reach as attributes of `tensorpack`, beside the packages themselves.
OLD_MODULES = {
    "utils": "argtools concurrency fs logger rect serialize stats timer viz",
    "utils/of_2017": "debug develop discretize globvars lut",
    "dataflow": "dataset dftools imgaug",
    "tfutils": (
        "collection distributions gradproc model_utils optimizer scope_utils sesscreate "
        "sessinit summary symbolic_functions tower varmanip varreplace"
    ),
    "predict": "export",
}


class Import(NamedTuple):
    """One import of a part of the library by another."""

    source: str  # top-level part that imports, such as "callbacks"
    target: str  # top-level part that is imported, such as "utils"
    where: str  # file and line


def module_files() -> List[Path]:
    """Every Python file of the library, in order."""
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The row entry that a file belongs to: its package, its own name, or "" for the root."""
    relative = path.relative_to(PACKAGE)
    if len(relative.parts) > 1:
        return relative.parts[0]
    return "" if relative.stem in OF_THE_ROOT else relative.stem


def dotted_name(path: Path) -> str:
    """The name under which a file of the library is imported."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_imports() -> Iterator[Import]:
    """Every import between two parts of the library, also those inside functions."""
    for path in module_files():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            for name in imported_names(node, path):
                target = _part_of_name(name)
                if target is not None and target != part_of(path):
                    where = f"{path.relative_to(ROOT)}:{node.lineno}"
                    yield Import(part_of(path), target, where)


def imported_names(node: ast.AST, path: Path) -> List[str]:
    """Absolute dotted names that an import statement may load; [] for other nodes."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = node.module or ""
    if node.level:
        package = dotted_name(path).split(".")
        if path.name != "__init__.py":
            package.pop()
        package = package[: len(package) - (node.level - 1)]
        base = ".".join([*package, base]) if base else ".".join(package)
    return [f"{base}.{alias.name}" for alias in node.names]


def _part_of_name(name: str) -> Optional[str]:
    """The part of the library that a dotted name lies in; None for others' modules."""
    parts = name.split(".")
    if parts[0] != "tensorpack":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in RANK else ""


def declared_names(path: Path) -> List[str]:
    """The `__all__` of a file: a list of names, those of `lazy_names` and others, or, where none is
    written, those that the tables of its package and of `_old_modules` have of it.
    """
    value = _assigned(path).get("__all__")
    if value is None:
        beside = lazy_names(path.parent / "__init__.py")
        helpers = ast.literal_eval(_assigned(PACKAGE / "_old_modules.py")["_HELPERS"])
        own = helpers.get(dotted_name(path).partition(".")[2], "").split()
        table = _assigned(path.parent / "__init__.py").get("_HELPERS")
        own += (ast.literal_eval(table) if table else {}).get(path.stem, "").split()
        return sorted([*own, *(name for name, home in beside.items() if home == path.stem)])
    if isinstance(value, ast.List):
        return list(ast.literal_eval(value))
    (listed,) = value.args  # sorted(_HOMES), or sorted([*_HOMES, "other"])
    if isinstance(listed, ast.Name):
        return sorted(lazy_names(path))
    others = [ast.literal_eval(each) for each in listed.elts if not isinstance(each, ast.Starred)]
    return sorted([*lazy_names(path), *others])


def lazy_names(path: Path) -> Dict[str, str]:
    """Name -> module beside it, of the table `_NAMES` in a package that loads its modules late."""
    table = _assigned(path).get("_NAMES")
    lazy = path.name == "__init__.py" and isinstance(table, ast.Dict)
    homes = ast.literal_eval(table) if lazy else {}
    return {name: module for module, names in homes.items() for name in names.split()}


def _assigned(path: Path) -> Dict[str, Any]:
    return {
        target.id: node.value
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def defined_names(path: Path) -> Set[str]:
    """Public functions and classes that a file defines at its top level."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {
        node.name for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")
    }


def reexported_names(path: Path) -> Set[str]:
    """Public names that a package's `__init__` imports from the library, also for editors only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.level or "tensorpack" in str(node.module)):
            names.update(alias.asname or alias.name for alias in node.names)
    return {name for name in names if not name.startswith("_")}


def packages() -> List[str]:
    """The packages of the library that can be imported, lowest row first, then by name."""
    names = {path.parent.name for path in PACKAGE.glob("[!_]*/__init__.py")} - PROGRAMS
    return sorted(names, key=lambda name: (RANK.get(name, len(LAYERS)), name))


def public_facades() -> List[str]:
    """The folders in packages that have public names of their own, such as "dataflow/imgaug"."""
    folders = [
        f"{package}/{name}" for package in OLD_MODULES for name in OLD_MODULES[package].split()
    ]
    return [folder for folder in folders if (PACKAGE / folder / "__init__.py").exists()]


def public_homes() -> Dict[str, str]:
    """Public name -> the lowest package that has it; what `from tensorpack import *` gives."""
    homes = {"tfv1": "compat"}
    for package in packages():
        for name in declared_names(PACKAGE / package / "__init__.py"):
            if not (PACKAGE / package / name).is_dir():  # those are modules, see there
                homes.setdefault(name, package)
    return dict(sorted(homes.items()))


def public_modules() -> Dict[str, str]:
    """Name -> dotted path of each package and module that is reachable from the root."""
    found = {name: f"tensorpack.{name}" for name in [*packages(), "compat"]}
    for package, names in OLD_MODULES.items():
        for name in names.split():
            folder = PACKAGE / package / name
            if folder.with_suffix(".py").exists() or (folder / "__init__.py").exists():
                found[name] = f"tensorpack.{package.replace('/', '.')}.{name}"
    homes = public_homes()
    return {name: path for name, path in sorted(found.items()) if name not in homes}
