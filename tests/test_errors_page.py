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
    classes = {}
    for name, home in homes.items():
        thing = getattr(importlib.import_module(f"tensorpack.{home}"), name)
        if isinstance(thing, type) and issubclass(thing, BaseException):
            classes[name] = thing
    return classes


def tree():
    """Name -> names of the exceptions above it, nearest first, as the page draws them."""
    above, bases = [], {}
    for line in re.search(r"```text\n(.*?)```", PAGE, re.DOTALL).group(1).splitlines():
        branch, names = re.match(r"([ │├└─]*)(\w+(?:, \w+)*)", line).groups()
        above[len(branch) // 4 :] = [names.split(", ")]
        for name in above[-1]:
            bases[name] = [name_above for names in above[-2::-1] for name_above in names]
    return bases


def test_every_exception_is_below_its_bases():
    classes = exceptions()
    drawn = tree()
    known = {**vars(builtins), **classes}
    assert sorted(set(drawn) & set(classes)) == sorted(classes)
    wrong = [
        (name, base)
        for name, bases in drawn.items()
        for base in bases
        if not issubclass(known[name], known[base])
    ]
    assert wrong == []


def test_every_exception_has_a_row():
    rows = {name for line in PAGE.splitlines() for name in re.findall(r"^\| `(\w+)`", line)}
    assert set(exceptions()) - rows == {"WorkerDied", "WorkerFailed"}  # they have a section
