"""A step, a save, a start and a resume stay short ways: `scripts/ways` counts their calls."""

import json
import subprocess
import sys

import pytest

from tests.checks import ROOT

# Of functions of the library, on the main thread, with the default callbacks.
MOST_CALLS = {"step": 24, "step, FeedInput": 46, "save": 198, "start": 990, "resume": 1650}


@pytest.mark.slow
def test_no_way_makes_more_calls_than_it_may():
    command = [sys.executable, str(ROOT / "scripts" / "ways"), "--json"]
    ways = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    assert set(ways) == set(MOST_CALLS)
    assert {way: calls for way, (calls, _) in ways.items() if calls > MOST_CALLS[way]} == {}
