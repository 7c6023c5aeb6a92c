"""A trace of calls names both ends of each call."""

import re
import sys

from tensorpack.utils.of_2017.debug import enable_call_trace


def inner():
    return 5


def outer():
    return inner()


def test_calls_are_printed_with_their_callers(capsys):
    before = sys.gettrace()
    enable_call_trace()
    try:
        result = outer()
    finally:
        sys.settrace(before)
    assert result == 5
    lines = re.findall(r"Call to `(\w+)` on line .*:(\d+) from .*:(\d+)\n", capsys.readouterr().out)
    first = inner.__code__.co_firstlineno
    assert ("inner", str(first), str(outer.__code__.co_firstlineno + 1)) in lines
    assert [name for name, _, _ in lines][:2] == ["outer", "inner"]
