"""No text tells anybody to install `tensorpack[...]`: the package index has another one there."""

import re

from tests.checks import ROOT

FOLDERS = ["tensorpack", "examples", "docs", "benchmarks", "scripts", "."]
TEXTS = [
    path
    for folder in FOLDERS
    for path in (ROOT / folder).glob("*" if folder == "." else "**/*")
    if path.suffix in (".py", ".pyi", ".md", ".toml", ".in") or path.name == "Makefile"
]


def test_no_install_line_names_the_package_index():
    wrong = re.compile(r"tensorpack\[[a-z]|pip3? install [^\n`]*\btensorpack\b(?![/.])")
    wrong_lines = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in TEXTS
        if path.is_file()
        for match in wrong.finditer(path.read_text(encoding="utf-8"))
    ]
    assert wrong_lines == []
