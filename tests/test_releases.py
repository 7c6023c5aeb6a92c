"""What the modules of old releases could be asked for is found there.

`old_releases.txt` has the public names of fifteen releases: a line is a module without
`tensorpack.`, the first and the last release that had the names, and these. `old_imports.txt` has
what modules of 0.8.9 and 0.11 had because they imported it from others; `.` is the root. A name
with a minus is not there, see docs/migration.md.
"""

import importlib
from collections import Counter

import pytest

from tests.conftest import HAS_TENSORFLOW
from tests.test_old_names import WITHOUT_TENSORFLOW, read

RELEASES = "0.1.9 0.2.0 0.3.0 0.4.0 0.5.0 0.6.0 0.7.0 0.8.0 0.8.5 0.8.9 0.9.0 0.9.4 0.9.8".split()
RELEASES += ["0.10", "0.11"]


def entries(name):
    """Yields the module, the releases and the names of each line."""
    for line in read(name):
        module, span, *names = line.split()
        first, _, last = span.replace("both", "0.8.9-0.11").partition("-")
        span = slice(RELEASES.index(first), RELEASES.index(last or first) + 1)
        yield f"tensorpack.{module}".rstrip("."), RELEASES[span], names


def has(module, name):
    try:
        return hasattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        assert module.startswith(error.name)
        return False


@pytest.mark.parametrize("name", ["old_releases.txt", "old_imports.txt"])
def test_names_are_found_where_they_were(name):
    differing = []
    for module, _, names in entries(name):
        if HAS_TENSORFLOW or f"{module}.".startswith(WITHOUT_TENSORFLOW):
            found = [each.lstrip("-") for each in names]
            found = [each if has(module, each) else f"-{each}" for each in found]
            differing += [(module, *each) for each in zip(names, found) if each[0] != each[1]]
    assert differing == [], "(module, recorded, found)"


@pytest.mark.parametrize("name, least", [("old_releases.txt", 0.99), ("old_imports.txt", 0.97)])
def test_nearly_all_names_of_each_release_are_found(name, least):
    count, found = Counter(), Counter()
    for _, releases, names in entries(name):
        for release in releases:
            count[release] += len(names)
            found[release] += sum(not each.startswith("-") for each in names)
    shares = {release: found[release] / count[release] for release in count}
    assert {release: share for release, share in shares.items() if share < least} == {}
    assert name == "old_imports.txt" or (len(shares), count["0.8.5"]) == (15, 395)
