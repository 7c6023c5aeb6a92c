"""Every Python block in README and docs compiles; those marked `<!-- run -->` run.

A marked block is a whole program. It runs in a folder and a Python of its own; programs that
name TensorFlow or the trainer are left out where TensorFlow is not installed.
"""

import os
import re
import subprocess
import sys
from typing import NamedTuple

import pytest

from tests.checks import ROOT
from tests.conftest import HAS_TENSORFLOW

BLOCK = re.compile(
    r"^(?P<mark><!-- run -->\n+)?```python\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"\]\((?!https?:|mailto:)(?P<target>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)


class Block(NamedTuple):
    where: str
    code: str
    marked: bool


def documents():
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")]
    return sorted(found)


def blocks():
    for path in documents():
        text = path.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            line = text.count("\n", 0, match.start("code")) + 1
            where = f"{path.relative_to(ROOT)}:{line}"
            yield Block(where, match.group("code"), match.group("mark") is not None)


BLOCKS = list(blocks())


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.where)
def test_blocks_compile(block):
    assert compile(block.code, block.where, "exec").co_filename == block.where


@pytest.mark.parametrize(
    "block", [block for block in BLOCKS if block.marked], ids=lambda block: block.where
)
def test_marked_blocks_run(block, tmp_path):
    if not HAS_TENSORFLOW and ("tfv1" in block.code or "import *" in block.code):
        pytest.skip("needs TensorFlow")
    script = tmp_path / "block.py"
    script.write_text(block.code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=str(tmp_path),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-5000:]


def test_the_example_of_the_readme_is_marked():
    assert [block for block in BLOCKS if block.marked and block.where.startswith("README.md")]


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(path):
    missing = []
    for target, anchor in LINK.findall(path.read_text(encoding="utf-8")):
        other = path.parent / target if target else path
        if not other.exists() or (anchor and anchor not in anchors(other)):
            missing.append(f"{target}#{anchor}" if anchor else target)
    assert missing == []


def anchors(path):
    """The anchors that a viewer of Markdown gives to the headings of a page."""
    text = FENCED.sub("", path.read_text(encoding="utf-8"))
    titles = HEADING.findall(text)
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


def test_the_map_names_files_that_exist():
    named = re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / "design" / "map.md").read_text("utf-8"))
    places = [ROOT / "tensorpack", ROOT / "examples" / "DeepQNetwork", ROOT]
    missing = [name for name in named if not any((place / name).is_file() for place in places)]
    assert len(named) >= 10 and not missing
