"""What errors and warnings advise exists: every call and argument that a text of the library names.

Advice that is a command or an example is followed by a test beside that of its error.
"""

import ast
import builtins
import re
import sys

import pytest

from tests.checks import PACKAGE

SOURCES = {path: ast.parse(path.read_text("utf-8")) for path in PACKAGE.rglob("*.py")}
NODES = [node for tree in SOURCES.values() for node in ast.walk(tree)]
pytestmark = pytest.mark.skipif(sys.version_info < (3, 8), reason="strings are other nodes there")
NO_PROSE = ("_old_modules.py", "report")
CALLED = re.compile(r"(?<![\w.%'])([A-Za-z_][\w.]*)\(")
GIVEN = re.compile(r"(?<![\w.$/#-])([a-z_]\w+)=(?=[\w\"'\[(.])")
OTHERS = (  # of Python, numpy, TensorFlow and LMDB, by the last part of the name
    "Graph TensorSpec as_default disable_eager_execution reset_default_graph set_shape "
    "variable_scope load_variable asarray filled float64 frombuffer int64 compact load_data "
    "parse_args tolist"
)
ARGUMENTS = {node.arg for node in NODES if isinstance(node, (ast.arg, ast.keyword))}
KNOWN = {*OTHERS.split(), *vars(builtins), *ARGUMENTS}
KNOWN |= {n.name for n in NODES if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
KNOWN |= {n.id for n in NODES if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def texts(tree):
    """The line and the text of each string that is no docstring, with a space for a value."""
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            docs.update(map(id, node.values))
            parts = [getattr(each, "value", "") for each in node.values]
            yield node.lineno, "".join(each if isinstance(each, str) else "X" for each in parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


@pytest.mark.parametrize("find", [CALLED, GIVEN], ids=["calls", "arguments"])
def test_what_a_text_names_exists(find):
    unknown = [
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for path, tree in SOURCES.items()
        if path.relative_to(PACKAGE).parts[0] not in NO_PROSE
        for line, text in texts(tree)
        if " " in text
        for name in find.findall(text)
        if name.split(".")[-1] not in KNOWN and "X" not in name
    ]
    assert unknown == []
