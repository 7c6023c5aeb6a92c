"""Every Python block in README and docs compiles; those marked `<!-- run -->` run.

A marked block is a whole program, and so is each example of the reference. It runs in a folder and
a process of its own, with TensorFlow loaded before; programs that name TensorFlow or the trainer
are left out where it is not installed.
"""

import contextlib
import re
import shutil

import pytest

from tests.checks import ROOT
from tests.conftest import HAS_TENSORFLOW
from tests.harness import Child, Zygote
from tests.pages import Block, blocks, documents, programs

LINK = re.compile(r"\]\((?!https?:|mailto:)(?P<target>[^)#\s]*)(?:#(?P<anchor>[^)\s]+))?")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
NEED_TENSORFLOW = ("tfv1", "import *", "tp.Callback", "from classifier")
HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)


BLOCKS = [block for path in documents() for block in blocks(path) if block.language == "python"]
EXAMPLES = ROOT / "docs" / "reference" / "examples"  # they import classifier.py
PROGRAMS = [block for path in documents() for block in programs(path)]
PROGRAMS += [
    Block(f"docs/reference/examples/{path.name}", "python", path.read_text("utf-8"), "run", None)
    for path in sorted(EXAMPLES.glob("*.py"))
]
LONGER = [pytest.mark.slow, pytest.mark.one_row]
OFTEN = "docs/reference/examples/ModelDesc.py"  # of those of the reference, in each run of CI


def marks_of(block):
    if block.where.startswith("README.md"):
        return []
    is_example = block.where.startswith("docs/reference/") and block.where != OFTEN
    return [*LONGER, pytest.mark.nightly] if is_example else LONGER


@pytest.fixture(scope="module")
def zygote():
    """The process that programs are forked from; None where it cannot load TensorFlow."""
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(Zygote()) if HAS_TENSORFLOW else None


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.where)
def test_blocks_compile(block):
    assert compile(block.code, block.where, "exec").co_filename == block.where


@pytest.mark.parametrize(
    "block",
    [pytest.param(block, marks=marks_of(block)) for block in PROGRAMS],
    ids=lambda block: block.where,
)
def test_marked_blocks_run(block, zygote, tmp_path):
    if not HAS_TENSORFLOW and any(name in block.code for name in NEED_TENSORFLOW):
        pytest.skip("needs TensorFlow")
    script = tmp_path / "block.py"
    script.write_text(block.code, encoding="utf-8")
    if "from classifier" in block.code:
        shutil.copy(str(EXAMPLES / "classifier.py"), str(tmp_path))
    if zygote is None:
        child = Child("-m", "tests.run_page", tmp_path, script)
    else:
        child = zygote.run(tmp_path, script)
    assert child.end(timeout=300) == 0, child.output[-5000:]


def test_the_quick_start_explains_the_script_of_the_readme():
    (script,) = programs(ROOT / "README.md")
    pieces = [block.code for block in blocks(ROOT / "docs" / "quickstart.md") if block.mark]
    assert "".join(pieces).replace("\n", "").startswith(script.code.replace("\n", ""))


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


def test_the_guides_name_every_page_of_a_subject():
    docs = ROOT / "docs"
    listed = {target for target, _ in LINK.findall((docs / "guides.md").read_text("utf-8"))}
    listed |= {target for target, _ in LINK.findall((docs / "index.md").read_text("utf-8"))}
    pages = {path.name for path in docs.glob("*.md")} - {"index.md", "comparison.md"}
    pages |= {f"howto/{path.name}" for path in (docs / "howto").glob("*.md")}
    assert pages - listed == set()


def test_the_map_names_files_that_exist():
    named = re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / "design" / "map.md").read_text("utf-8"))
    places = [ROOT / "tensorpack", ROOT / "examples" / "DeepQNetwork", ROOT]
    missing = [name for name in named if not any((place / name).is_file() for place in places)]
    assert len(named) >= 10 and not missing
