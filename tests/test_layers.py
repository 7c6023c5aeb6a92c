"""Imports point down the table of docs/design/map.md."""

import ast

import pytest

from tests.checks import RANK, ROOT, imported_names, module_files, package_imports, part_of

EXAMPLES = sorted((ROOT / "examples").glob("*/*.py"))


def test_imports_point_strictly_down():
    wrong = [
        f"{edge.where}: {edge.source} must not import {edge.target or 'the root'}"
        for edge in package_imports()
        if edge.source and not _allowed(edge.source, edge.target)
    ]
    assert not wrong, "\n".join(wrong)


def _allowed(source, target):
    if target == "":  # the root: only its version, which nobody needs but the program
        return source == "command"
    return RANK[target] < RANK.get(source, -1)


def test_the_table_is_the_one_in_the_documentation():
    text = (ROOT / "docs" / "design" / "map.md").read_text(encoding="utf-8")
    drawn = {}
    for line in text.split("```")[1].splitlines():
        fields = line.split("(")[0].replace("|", " ").split()
        if fields and fields[0][0].isdigit():
            drawn.update(dict.fromkeys(fields[1:], float(fields[0])))
    assert sorted(drawn) == sorted(RANK)
    in_order = sorted(RANK, key=lambda name: (RANK[name], name))
    assert sorted(drawn, key=lambda name: (drawn[name], name)) == in_order


@pytest.mark.parametrize("part", ["utils", "dataflow", "RL", "launch"])
def test_the_parts_without_tensorflow_never_import_it(part):
    wrong = [
        f"{path}:{node.lineno}"
        for path in module_files()
        if part_of(path) == part
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in imported_names(node, path)
        if name.split(".")[0] in ("tensorflow", "tensorflow_core")
    ]
    assert wrong == []


def test_every_module_says_what_it_is_for():
    silent = [
        str(path.relative_to(ROOT))
        for path in module_files()
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


@pytest.mark.parametrize("folder", sorted({path.parent for path in EXAMPLES}), ids=lambda x: x.name)
def test_an_example_is_one_folder(folder):
    others = {path.stem for path in EXAMPLES} - {path.stem for path in folder.glob("*.py")}
    wrong = [
        f"{path.name}:{node.lineno} imports {name}"
        for path in sorted(folder.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in imported_names(node, path)
        if name.split(".")[0] in others
    ]
    assert wrong == []
