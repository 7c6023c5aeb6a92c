"""The page about errors has every public exception, where it stands in the tree of classes."""

import builtins
import importlib
import re

from tensorpack import _public_names
from tests.checks import ROOT

PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
ELSEWHERE = {  # module -> exceptions that are public there, and not in the root
    "dataflow.imgaug": ["AugmentationError"],
    "utils.checkpoints": (
        "DirectoryReplaced",
        "NoValidCheckpoint",
        "SegmentDamaged",
        "UnsupportedState",
    ),
    "utils.logger": ["DirectoryInUse"],
    "utils.serialize": ["FrameError"],
}


def exceptions():
    """Name -> class of what the page must have."""
    homes = {name: home for home, names in ELSEWHERE.items() for name in names}
    homes.update(_public_names.HOMES)
    found = {}
    for name, home in homes.items():
        thing = getattr(importlib.import_module(f"tensorpack.{home}"), name)
        if isinstance(thing, type) and issubclass(thing, BaseException):
            found[name] = thing
    return found


def tree():
    """Name -> names of the exceptions above it, nearest first, as the page draws them."""
    above, found = [], {}
    for line in re.search(r"```text\n(.*?)```", PAGE, re.DOTALL).group(1).splitlines():
        branch, names = re.match(r"([ │├└─]*)(\w+(?:, \w+)*)", line).groups()
        above[len(branch) // 4 :] = [names.split(", ")]
        for name in above[-1]:
            found[name] = [each for names in above[-2::-1] for each in names]
    return found


def test_every_exception_is_below_its_bases():
    classes = exceptions()
    drawn = tree()
    known = {**vars(builtins), **classes}
    assert sorted(set(drawn) & set(classes)) == sorted(classes)
    wrong = [
        (name, each)
        for name, bases in drawn.items()
        for each in bases
        if not issubclass(known[name], known[each])
    ]
    assert wrong == []


def test_every_exception_has_a_row():
    rows = {name for line in PAGE.splitlines() for name in re.findall(r"^\| `(\w+)`", line)}
    assert set(exceptions()) - rows == {"WorkerDied", "WorkerFailed"}  # they have a section


def test_rows_say_where_an_exception_is_if_not_in_the_root():
    lines = PAGE.splitlines()
    for module, names in ELSEWHERE.items():
        for name in names:
            (row,) = [line for line in lines if line.startswith(f"| `{name}`")]
            assert f"`tensorpack.{module}`" in row
