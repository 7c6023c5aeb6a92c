"""`tensorpack examples [DIR]`: lists the example scripts, or copies them into a folder."""

import argparse
import ast
import os
from typing import Any, Dict, List, Optional

from tensorpack.utils._words import did_you_mean

from ._common import FINE, CommandError, json_text, table_text

HELP = "list the example scripts, or copy them into a folder"
_SUFFIXES = (".py", ".md", ".json", ".txt")
_NO_EXAMPLES = ("__pycache__", "train_log")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Lists the example scripts. With DIR, copies them there, and overwrites nothing."
    )
    add = parser.add_argument
    add("directory", nargs="?", metavar="DIR", help="where to copy them to; it is made if needed")
    text = "only this one, such as DeepQNetwork (may be given several times)"
    add("--only", action="append", metavar="NAME", help=text)
    add("--json", action="store_true", help="print an object of JSON")


def run(args: Any) -> int:
    source = _find_folder()
    files = _files(source, args.only)
    if args.directory is None:
        _list(source, files, args)
        return FINE
    copied = _copy(source, files, args.directory)
    if args.json:
        args.write(json_text({"directory": args.directory, "files": copied}))
        return FINE
    args.write(f"{len(copied)} files are in {args.directory}. For example:")
    scripts = _scripts(source, files)
    for script in scripts[:3]:
        folder = os.path.dirname(script)
        used = [each for each in files if os.path.dirname(each) == folder and each not in scripts]
        has_fake = any('"--fake"' in _text(source, each) for each in [script, *used])
        flags = " --fake" if has_fake else " --help"
        args.write(f"  python {os.path.join(args.directory, script)}{flags}")
    return FINE


def _find_folder() -> str:
    """Returns the folder of the examples: in a wheel, or in a clone that is installed in place."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for folder in os.path.join(package, "_examples"), os.path.join(package, "..", "examples"):
        if os.path.isfile(os.path.join(folder, "README.md")):
            return os.path.realpath(folder)
    raise CommandError(
        f"The examples are neither in {package} nor beside it: this installation was made without "
        "them. Install from a clone: pip install ."
    )


def _files(source: str, only: Optional[List[str]]) -> List[str]:
    """Returns the paths of the files within the folder, sorted."""
    there = {each.name for each in os.scandir(source) if each.is_dir()}
    names = sorted(there.difference(_NO_EXAMPLES))
    for name in only or []:
        if name not in names:
            near = did_you_mean(name, names) or f" There are {', '.join(names)}."
            raise CommandError(f"There is no example {name!r}.{near}")
    found = []
    for folder, folders, files in os.walk(source):
        folders[:] = [each for each in folders if each not in _NO_EXAMPLES]
        paths = (os.path.relpath(os.path.join(folder, each), source) for each in files)
        found += [each for each in paths if not only or each.split(os.sep)[0] in only]
    return sorted(each for each in found if each.endswith(_SUFFIXES))


def _list(source: str, files: List[str], args: Any) -> None:
    scripts: Dict[str, str] = {}
    for each in _scripts(source, files):
        text = ast.get_docstring(ast.parse(_text(source, each))) or ""
        scripts[each] = text.split("\n")[0]
    if args.json:
        args.write(json_text({"directory": source, "scripts": scripts}))
        return
    args.write(table_text(scripts.items(), ["script", "what it does"]))
    args.write("\ntensorpack examples DIR copies all, --only DeepQNetwork one of them.")


def _scripts(source: str, files: List[str]) -> List[str]:
    main = '\nif __name__ == "__main__":'
    return [each for each in files if each.endswith(".py") and main in _text(source, each)]


def _text(folder: str, name: str) -> str:
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read()


def _copy(source: str, files: List[str], directory: str) -> List[str]:
    """Copies the files, or none if one is there already; returns their paths."""
    targets = [os.path.join(directory, each) for each in files]
    there = [each for each in targets if os.path.lexists(each)]
    if there:
        more = f", as do {len(there) - 1} more files" if len(there) > 1 else ""
        raise CommandError(
            f"{there[0]} exists{more}; nothing is overwritten. Give another folder, or remove it."
        )
    for each, target in zip(files, targets):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(os.path.join(source, each), "rb") as file, open(target, "xb") as new:
            new.write(file.read())
    return targets
