"""What went wrong is told in a line."""

import pytest

from tensorpack.dataflow import BatchData, FakeData
from tensorpack.dataflow._cli.errors import CommandError, told
from tensorpack.utils.serialize import loads
from tests.dataflow._cli.flows import twenty

pytest.importorskip("msgpack")


@pytest.mark.parametrize("fail", [lambda: FakeData([[1]], size=-1), lambda: loads(b"")])
def test_what_the_package_raises_is_a_sentence(fail):
    """In this part of it and in those below."""
    with pytest.raises(ValueError) as caught:
        fail()
    assert told(caught.value) == str(caught.value)


def test_errors_in_a_line():
    assert told(CommandError("A sentence.")) == "A sentence."
    assert told(KeyError("name")) == "KeyError: name. --traceback shows more."
    assert told(ValueError()) == "ValueError. --traceback shows more."
    assert told(OSError(2, "No such thing", "a")) == "[Errno 2] No such thing: 'a'"
    with pytest.raises(ValueError) as caught:
        BatchData(twenty, 0)
    assert told(caught.value) == str(caught.value)
