"""What the site adds to Sphinx: pages from outside `docs`, links, the sidebar, the API reference.

`make docs` builds the site with warnings as errors; these tests need no Sphinx.
"""

import importlib
import re
import sys

import pytest

from tests.checks import ROOT
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


def test_a_page_is_replaced_by_the_file_that_it_names(extension):
    text = shown(extension, "project/x.md", "<!-- the site shows ../../SECURITY.md -->\nhere\n")
    assert text.startswith("# Security\n")
    assert "here" not in text


def test_a_page_stands_behind_the_file_that_it_begins_with(extension):
    text = shown(extension, "x.md", "<!-- the site begins with ../SECURITY.md -->\n# Own\n")
    assert text.startswith("# Security\n") and text.endswith("\n## Own\n")


@pytest.mark.parametrize(
    "link, expected",
    [
        ("[a](../trainers.md#steps)", "[a](../trainers.md#steps)"),
        ("[a](../../CHANGELOG.md)", "[a](../project/changelog.md)"),
        ("[a](../../examples/README.md#x)", "[a](../examples/index.md#x)"),
        ("[a](../../Makefile)", "[a](../../Makefile)"),
        ("[a `b`](../../tests)", "a `b`"),
        ("[a](https://x.org/y)", "[a](https://x.org/y)"),
        ("[a](#below)", "[a](#below)"),
        ("![a](../images/augmentors-crop.png)", "![a](../images/augmentors-crop.png)"),
        ("```\n[a](../../tests)\n```", "```\n[a](../../tests)\n```"),
    ],
)
def test_links_lead_to_pages_of_the_site(extension, link, expected):
    assert shown(extension, "design/x.md", link) == expected


def test_links_of_a_file_from_outside_lead_from_the_page_that_shows_it(extension):
    text = shown(extension, "project/x.md", "<!-- the site shows ../../README.md -->\n")
    assert "](../learning/breakout.svg)" in text
    assert "](../index.md)" in text


def test_every_page_has_one_place_in_the_sidebar(extension):
    text = extension("pages").sidebar(
        {"Last": ["b/*"], "First": ["c", "*"], "None": ["d/*"]},
        ["First", "None", "Last"],
        ["index", "a", "b/x", "b/a", "c"],
    )
    assert text == (
        "```{toctree}\n:hidden:\n:caption: First\n\nc\na\n```\n\n"
        "```{toctree}\n:hidden:\n:caption: Last\n\nb/a\nb/x\n```\n"
    )


@pytest.mark.parametrize(
    "line, expected",
    [
        ("Two `Flip`s.", "Two ``Flip``\\ s."),
        ("By `, ` and `\\n`.", "By ``,`` and ``\\n``."),
        ("Already ``so``.", "Already ``so``."),
    ],
)
def test_backticks_are_code(extension, line, expected):
    assert extension("docstrings").rewrite([line]) == [expected]


def test_each_argument_has_an_entry(extension):
    lines = ["Does.", "", "Args:", "  a, *b: one", "    more.", "", "Returns:", "  a, b: both."]
    assert extension("docstrings").rewrite(lines) == [
        *["Does.", "", "Args:", "  a: one", "    more.", "  *b: one", "    more.", ""],
        *["Returns:", "  a, b: both."],
    ]


def test_that_nothing_is_returned_is_not_said(extension):
    nodes = pytest.importorskip("docutils.nodes")

    def field(kind):
        name, body = nodes.field_name("", "rtype"), nodes.field_body("", nodes.Text(kind))
        return nodes.field("", name, body)

    def fields(*kinds):
        return nodes.field_list("", *[field(kind) for kind in kinds])

    content = nodes.section("", fields("None"), fields("None", "int"))
    extension("docstrings").leave_out_none(None, "py", "method", content)
    (left,) = content.children
    assert [field[1].astext() for field in left] == ["int"]


@pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")
def test_every_public_name_is_in_the_reference(extension):
    documented, others = extension("reference").public_objects()
    found = {f"{address}.{name}" for address, names in documented.items() for name in names}
    found |= set(documented)  # modules with pages of their own
    assert set(others.values()) <= found
    recorded = (ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8").split()
    missing = {f"tensorpack.{name}" for name in recorded} - found - set(others)
    assert len(recorded) > 400 and missing == set()


@pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")
def test_an_object_is_documented_under_its_shortest_address(extension):
    documented, others = extension("reference").public_objects()
    assert "InitFrom" in documented["tensorpack.tfutils"]
    assert others["tensorpack.tfutils.sessinit.InitFrom"] == "tensorpack.tfutils.InitFrom"
    assert others["tensorpack.train.ModelDesc"] == "tensorpack.graph_builder.ModelDesc"


def test_every_public_name_is_in_a_guide():
    pages = [
        path for folder in (".", "tutorials", "howto") for path in (DOCS / folder).glob("*.md")
    ]
    found = set(re.findall(r"\w+", " ".join(path.read_text(encoding="utf-8") for path in pages)))
    recorded = (ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8").split()
    missing = [name for name in recorded if name.rpartition(".")[2] not in found]
    assert len(recorded) > 400
    assert missing == [], "Say in the guide of their subject what these are for."
