"""What the site adds to Sphinx: links, pages of scripts, the API reference.

`make docs` builds the site with warnings as errors; these tests need no Sphinx.
"""

import ast
import importlib
import re
import sys

import pytest

from tests.checks import ROOT, module_files
from tests.conftest import HAS_TENSORFLOW

DOCS = ROOT / "docs"


@pytest.fixture
def extension(monkeypatch):
    """Imports a module of the extension, and forgets it afterwards."""
    monkeypatch.syspath_prepend(str(DOCS))
    yield lambda name: importlib.import_module(f"_extension.{name}")
    for name in [name for name in sys.modules if name.split(".")[0] == "_extension"]:
        del sys.modules[name]


def shown(extension, page, text):
    pages = extension("pages")
    return pages.text_of_page(DOCS / page, text, pages.stand_ins())


@pytest.mark.parametrize(
    "link, expected",
    [
        ("[a](../trainers.md#steps)", "[a](../trainers.md#steps)"),
        ("[a](../../CHANGELOG.md)", "[a](../project/changelog.md)"),
        ("[a](../../examples/README.md#x)", "[a](../examples/index.md#x)"),
        ("[a `b`](../../tests)", "a `b`"),
        ("[a](https://x.org/y)", "[a](https://x.org/y)"),
        ("![a](../images/augmentors-crop.png)", "![a](../images/augmentors-crop.png)"),
        ("```\n[a](../../tests)\n```", "```\n[a](../../tests)\n```"),
    ],
)
def test_links_lead_to_pages_of_the_site(extension, link, expected):
    assert shown(extension, "design/x.md", link) == expected


def test_each_script_of_the_gallery_has_a_page(extension):
    pages = extension("pages")
    texts = {page.name: text for page, text in pages.pages_of_scripts().items()}
    text = texts["basics-mnist_convnet.md"]
    assert text.startswith("# MNIST with layers\n")
    assert "{download}`mnist_convnet.py <../../../examples/basics/mnist_convnet.py>`" in text
    assert (
        shown(extension, "x.md", "[a](../examples/GAN/DCGAN.py)")
        == "[a](examples/scripts/GAN-DCGAN.md)"
    )
    gallery = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    for picture in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", gallery):
        assert (ROOT / "examples" / picture).stat().st_size < 60_000, picture


@pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")
def test_every_public_name_is_on_one_page(extension):
    reference, tasks = extension("reference"), extension("tasks")
    documented, others = reference.public_objects()
    pages = reference.by_task(documented)
    listed = [name for names in pages.values() for name in names]
    assert len(listed) == len(set(listed)) > 600
    assert set(others.values()) <= set(listed)
    recorded = (ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8").split()
    missing = (
        {f"tensorpack.{name}" for name in recorded} - set(listed) - set(documented) - set(others)
    )
    assert len(recorded) > 400 and missing == set()
    assert set(tasks.SECTIONS.values()) <= {*tasks.TASKS, reference.PACKAGES}
    for title in tasks.TASKS:
        assert all((DOCS / f"{guide}.md").exists() for guide in tasks.guides_of(title))


def test_every_public_name_is_in_a_guide():
    pages = [
        path for folder in (".", "tutorials", "howto") for path in (DOCS / folder).glob("*.md")
    ]
    words = set(re.findall(r"\w+", " ".join(path.read_text(encoding="utf-8") for path in pages)))
    recorded = (ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8").split()
    missing = [
        name
        for name in recorded
        if not name.startswith("utils.")  # those helpers are in the reference alone
        and name.rpartition(".")[2] not in words
    ]
    assert len(recorded) > 400
    assert missing == [], "Say in the guide of their subject what these are for."


def test_no_docstring_shows_its_markup():
    """Of one backtick `docstrings.py` makes code; reStructuredText has none inside of bold."""
    shown = re.compile(r"``|(?<!\w)\*\*(?=[\w`])[^*`]*`[^`]+`[^*`]*\*\*(?!\w)")
    for path in module_files():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
                found = shown.search(ast.get_docstring(node) or "")
                assert found is None, f"{path}: {found.group()!r}"
