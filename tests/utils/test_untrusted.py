"""JSON that another person may have written."""

import json

import pytest

from tensorpack.utils import untrusted
from tensorpack.utils.untrusted import parse_json


def test_what_is_json_is_read():
    value = {"a": [1, -2.5, None, True, "\u00f6"], "seed": 2**128 - 1}
    assert parse_json(json.dumps(value, ensure_ascii=False).encode("utf-8")) == value


@pytest.mark.parametrize(
    "data, message",
    [
        (b"[", "Expecting value"),
        (b"\xff", "utf-8"),
        (b"[" * 100000, "nested too deeply"),
        (b'{"a":' * 100000, "nested too deeply"),
        (b"1" * 51, "too many digits"),
        (b"[-" + b"9" * 10**7 + b"]", "too many digits"),
        (b"[" + b"{}," * 500000 + b"{}]", "more than 500000 lists and objects"),
    ],
)
def test_what_would_take_long_or_much_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        parse_json(data)


def test_the_number_of_parts_is_that_which_is_named(monkeypatch):
    monkeypatch.setattr(untrusted, "_MOST_PARTS", 3)
    assert parse_json(b"[[], {}]") == [[], {}]
    with pytest.raises(ValueError, match="more than 3"):
        parse_json(b"[[], {}, []]")
