"""Row 56: log directories that another person made are reported, plotted, inspected, compared.

Whatever they hold, no file outside them is opened, nothing hangs, no command takes much memory, and
each ends with a page, or with one line that says what is wrong.
"""

import json
import os
import re
import select
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from tests.conftest import HAS_TENSORFLOW
from tests.harness import ROOT

from .hostile import CANARY, DIRECTORIES, make_outside

LIMIT_SECONDS = 120
LIMIT_BYTES = 500 << 20
MODULES = ["numpy", "tabulate", "tensorpack.report", "matplotlib.figure"]
# A directory of each kind, of those that are made and read in a moment.
FAST = (
    "records_link records_fifo checkpoint_fifo variables_link images_link images_fifo devices "
    "video_ffconcat_link video_ffconcat_fifo images_huge_headers sparse_log.log deep_lists "
    "deep_by_900 surrogates numbers_huge digits types_objects variable_numpy manifest_outside "
    "archive_pickle names_of_bytes escapes scripts formulas log_tables named_escapes"
).split()
TAGS = set(
    "html head meta title style body header h1 p span b section dl dt dd h2 h3 div svg path text "
    "circle details summary a table tr th td pre footer figure img figcaption code i".split()
)


class Child:
    """The process that runs the commands."""

    def __init__(self, modules):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.hostile_child", *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
            cwd=str(ROOT),
        )

    def ask(self, commands, watch):
        """Returns what the commands did; one that does not end in time is None, and the last."""
        request = {"commands": commands, "watch": str(watch)}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        answers = []
        while len(answers) < len(commands) and None not in answers:
            line = self._line()
            answers.append(json.loads(line) if line else None)
        return answers

    def _line(self):
        line = b""  # of a pipe without a buffer, of which `select` would not know
        while not line.endswith(b"\n"):
            if not select.select([self._process.stdout], [], [], LIMIT_SECONDS)[0]:
                return b""
            data = self._process.stdout.readline()
            if not data:
                return b""
            line += data
        return line

    def close(self):
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


class Children:
    """Starts a process when the one before has not survived."""

    def __init__(self, modules):
        self._modules = modules
        self._child = Child(modules)

    def ask(self, commands, watch):
        """As `Child.ask`."""
        if self._child is None:
            self._child = Child(self._modules)
        answers = self._child.ask(commands, watch)
        if None in answers:
            self.close()
        return answers

    def close(self):
        """Ends the process, if there is one."""
        if self._child is not None:
            self._child.close()
        self._child = None


@pytest.fixture(scope="module")
def children():
    """What runs the commands as if TensorFlow were not installed, which loads in a moment."""
    found = Children([*MODULES, "-tensorflow"])
    yield found
    found.close()


@pytest.fixture(scope="module")
def all_children():
    """What runs the commands with TensorFlow, if it is there."""
    found = Children([*MODULES, "tensorflow"] if HAS_TENSORFLOW else MODULES)
    yield found
    found.close()


@pytest.fixture
def place(tmp_path):
    """A folder with `outside` and an archive that is sound; it is emptied after the test."""
    make_outside(tmp_path / "outside")
    (tmp_path / "here").mkdir()
    np.savez(str(tmp_path / "other.npz"), W=np.zeros(1, "int8"))
    yield tmp_path
    shutil.rmtree(str(tmp_path / "here"))


class Page(HTMLParser):
    """Collects what is in a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.values = set(), set(), []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        """Notes a tag."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.values += [value for name, value in attrs if name in ("href", "src")]


def check_page(path):
    """Checks that a page can do nothing."""
    page = Page(path.read_text(encoding="utf-8"))
    assert page.tags <= TAGS, page.tags - TAGS
    assert not [name for name in page.attributes if name.startswith("on")]
    assert all(value.startswith(("./", "data:image/")) for value in page.values)


def check_answer(argv, answer):
    """Checks what a command did."""
    assert answer is not None, f"{argv} does not end, or has ended the process"
    assert answer["opened"] == [], answer
    assert answer["memory"] < LIMIT_BYTES, answer
    # A process begins with the size of the one that starts it.
    assert answer["of_children"] < LIMIT_BYTES + answer["begin"], answer
    printed = answer["out"] + answer["err"]
    assert not re.search("[\0-\x08\x0b-\x1f\x7f-\x9f\u202e]", printed), printed
    assert CANARY not in printed
    if answer["code"] in (0, 1):
        assert answer["out"], answer
        assert not answer["err"] or answer["err"].startswith("skipped: "), answer
    else:
        assert answer["code"] == 2 and answer["out"] == "", answer
        # What the library logs may come before.
        assert re.fullmatch(r"(\[\d{4} .*\n)*tensorpack \w+: error: .+\n", answer["err"]), answer
        assert "--traceback shows more" not in answer["err"], answer
        assert len(answer["err"]) < 2000, answer


def check_directory(children, place, name):
    """Makes a directory, and runs the commands over it."""
    here, outside = place / "here", place / "outside"
    DIRECTORIES[name](here, outside)
    if name.startswith("named_"):
        (here,) = here.iterdir()
    before = {path.name: path.read_bytes() for path in outside.iterdir()}
    archive, other = here / "weights.npz", place / "other.npz"
    weights = str(archive if archive.exists() else here)
    commands = [
        ["report", str(here)],
        ["plot", str(here)],
        ["plot", str(here), "--out", str(place / "curves.svg"), "--smooth", "0.5"],
        ["inspect", weights],
        ["inspect", weights, "--check", "--all", "--json"],
        ["diff", weights, str(other)],
        ["diff", weights, weights, "--all"],
    ]
    for argv, answer in zip(commands, children.ask(commands, outside)):
        check_answer(argv, answer)
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == before
    page = here / "report.html"
    if page.is_file() and not page.is_symlink():
        check_page(page)


@pytest.mark.fault_row(56)
@pytest.mark.parametrize("name", FAST)
def test_a_foreign_directory_gives_a_page_or_one_line(name, children, place):
    check_directory(children, place, name)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.fault_row(56)
@pytest.mark.parametrize("name", sorted(DIRECTORIES))
def test_each_foreign_directory_gives_a_page_or_one_line(name, all_children, place):
    check_directory(all_children, place, name)


def test_what_is_checked_would_be_seen(children, place):
    """Of a log directory that may be read, the files are seen to be opened."""
    outside = place / "outside"
    (answer,) = children.ask([["report", str(outside), "--out", str(place / "p.html")]], outside)
    assert answer["code"] == 0 and {"stats.json", "run.json"} <= set(answer["opened"])
    assert answer["memory"] > 0 and CANARY in (place / "p.html").read_text()
