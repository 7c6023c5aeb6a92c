"""What the site adds to Sphinx: pages from outside `docs`, links, the sidebar, the API reference.

`make docs` builds the site with warnings as errors; these tests need no Sphinx.
"""

import importlib
import re
import sys

import pytest

from tests.checks import ROOT
from tests.conftest import HAS_TENSORFLOW
from tests.pages import write_files

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
    assert "](../guides.md)" in text


def test_every_page_has_one_place_in_the_sidebar(extension):
    below = extension("pages").children(
        {
            "index": ["a", "b/index", "d/index"],
            "b/index": ["b/z", "b/*"],
            "d/index": ["d/*"],
            "a": ["*"],
        },
        ["index", "a", "c", "b/index", "b/y", "b/x", "b/z", "b/deep/x"],
    )
    assert below == {
        "index": ["a", "b/index"],
        "b/index": ["b/z", "b/x", "b/y"],
        "d/index": [],
        "a": ["c"],
    }


def test_a_list_behind_a_comment_is_cards(extension):
    assert shown(extension, "x.md", "<!-- cards -->\n\n- one\n") == "{.cards}\n- one\n"


def test_a_page_offers_the_files_that_its_test_runs(extension, tmp_path):
    page, folder = DOCS / "tutorials" / "01-classifier.md", tmp_path / "offered"
    line = extension("pages").offer_files(page, folder)
    names = write_files(page, tmp_path / "run")
    assert names and [f"{name} <" in line for name in names] == [True] * len(names)
    for name in names:
        assert (folder / name).read_bytes() == (tmp_path / "run" / name).read_bytes()
    assert extension("pages").offer_files(DOCS / "guides.md", folder) == ""


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

    bases = nodes.paragraph("", "", nodes.Text("Bases: object"))
    content = nodes.section("", bases, fields("None"), fields("None", "int"))
    extension("docstrings").leave_out_none(None, "py", "method", content)
    (left,) = content.children
    assert [field[1].astext() for field in left] == ["int"]


@pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")
def test_every_public_name_is_on_one_page(extension):
    reference, tasks = extension("reference"), extension("tasks")
    documented, others = reference.public_objects()
    pages = reference.by_task(documented)
    found = [name for names in pages.values() for name in names]
    assert len(found) == len(set(found)) > 600
    assert set(others.values()) <= set(found)
    recorded = (ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8").split()
    missing = (
        {f"tensorpack.{name}" for name in recorded} - set(found) - set(documented) - set(others)
    )
    assert len(recorded) > 400 and missing == set()
    assert set(tasks.SECTIONS.values()) <= {*tasks.TASKS, reference.PACKAGES}
    for title in tasks.TASKS:
        assert all((DOCS / f"{guide}.md").exists() for guide in tasks.guides_of(title))


@pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")
def test_a_name_on_no_page_is_an_error(extension):
    reference = extension("reference")
    documented, _ = reference.public_objects()
    documented["tensorpack.utils"]["brand_new"] = print
    del documented["tensorpack.RL"]["Player"]
    with pytest.raises(
        ValueError, match="no page lists tensorpack.utils.brand_new; not public"
    ) as error:
        reference.by_task(documented)
    assert "tensorpack.RL.Player. Edit docs/_extension/tasks.py." in str(error.value)


@pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")
def test_the_examples_of_the_reference_have_entries(extension):
    examples = {path.stem for path in (DOCS / "reference" / "examples").glob("*.py")}
    documented, _ = extension("reference").public_objects()
    names = [name for found in documented.values() for name in found]
    assert len(examples) > 40
    assert {name for name in examples if names.count(name) != 1} == {"classifier"}


@pytest.mark.parametrize(
    "docstring, expected",
    [
        ("Writes a list, such as::\n\n  [1]", "Writes a list."),
        ("Does this:\n\n  x", "Does this."),
        ("Takes `a.b. c`. More.", "Takes ``a.b. c``."),
    ],
)
@pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")
def test_a_summary_is_a_whole_sentence(extension, docstring, expected):
    thing = type("thing", (), {"__doc__": docstring})
    assert extension("reference")._first_sentence(thing) == expected


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
