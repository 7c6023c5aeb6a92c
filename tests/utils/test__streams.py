"""Tests of `tensorpack.utils._streams`."""

import io
import os
import subprocess
import sys
import time

import pytest

from tensorpack.utils import _streams
from tensorpack.utils._streams import (
    ForgivingStream,
    can_write,
    is_terminal,
    point_at_devnull,
    same_screen,
)
from tests.checks import ROOT


class Failing(io.StringIO):
    """A stream that raises what it is given."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error

    def flush(self):
        raise self.error


def test_what_is_no_terminal(tmp_path):
    closed = (tmp_path / "f").open("w")
    closed.close()
    assert [is_terminal(stream) for stream in (None, closed, io.StringIO())] == [False] * 3


def test_a_pseudo_terminal_is_one():
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as stream:
        assert is_terminal(stream) and same_screen(stream, stream)
    os.close(ours)


def test_streams_into_one_file_share_it(tmp_path):
    with (tmp_path / "a").open("w") as a, (tmp_path / "a").open("w") as also_a:
        with (tmp_path / "b").open("w") as b:
            assert same_screen(a, also_a)
            assert not same_screen(a, b)
            assert not same_screen(a, io.StringIO())


@pytest.mark.parametrize("error", [OSError(28, "full"), ValueError("closed"), BrokenPipeError()])
def test_a_forgiving_stream_drops_what_it_cannot_write(error):
    stream = ForgivingStream(Failing(error))
    assert stream.write("four") == 4
    stream.flush()


def test_a_forgiving_stream_hides_no_other_error():
    with pytest.raises(RuntimeError):
        ForgivingStream(Failing(RuntimeError())).write("x")


def test_a_forgiving_stream_without_a_stream_drops_everything():
    stream = ForgivingStream(None)
    assert stream.write("four") == 4
    stream.flush()
    assert stream == ForgivingStream(None)


def test_a_forgiving_stream_does_not_wait_long_for_a_reader_that_stopped(full_pipe, monkeypatch):
    monkeypatch.setattr(_streams, "_PATIENCE_SECONDS", 0.2)
    stream, drain = full_pipe
    forgiving, begin = ForgivingStream(stream), time.monotonic()
    for _ in range(100):
        forgiving.write("lost")
        forgiving.flush()
    assert 0.2 <= time.monotonic() - begin < 1.0
    drain()
    forgiving.write("read")
    forgiving.flush()
    assert drain() == b"read"


def test_what_has_no_descriptor_takes_everything():
    assert can_write(None) and can_write(io.StringIO())


def test_a_forgiving_stream_is_its_stream_to_others():
    inner = io.StringIO()
    stream = ForgivingStream(inner)
    stream.write("text")
    assert inner.getvalue() == stream.getvalue() == "text"
    assert stream == inner and inner == stream and stream == ForgivingStream(inner)
    assert stream != sys.stdout and hash(stream) == hash(inner)


def test_a_broken_pipe_becomes_the_null_device():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        stream.write("lost")
        with pytest.raises(BrokenPipeError):
            stream.flush()
        point_at_devnull(stream)
        stream.flush()
        assert os.path.sameopenfile(stream.fileno(), stream.fileno())


def test_a_stream_without_a_descriptor_is_left_alone():
    stream = io.StringIO()
    point_at_devnull(stream)
    point_at_devnull(None)
    stream.write("still here")
    assert stream.getvalue() == "still here"


@pytest.mark.parametrize("redirections", ["2>&-", "<&- >&- 2>&-"])
def test_closed_standard_descriptors_are_opened_and_no_other(redirections, tmp_path):
    code = (
        "import os\n"
        "from tensorpack.utils._streams import open_standard_descriptors\n"
        "open_standard_descriptors()\n"
        "number = os.open('links', os.O_WRONLY | os.O_CREAT)\n"
        "links = [os.readlink(f'/proc/self/fd/{each}') for each in range(3)]\n"
        "os.write(number, f'{number} {links}'.encode())\n"
    )
    command = ["sh", "-c", f'exec "$@" {redirections}', "sh", sys.executable, "-c", code]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=str(tmp_path), stdin=subprocess.PIPE, env=env, check=True)
    number, links = (tmp_path / "links").read_text().split(" ", 1)
    assert number == "3" and links.count("/dev/null") == redirections.count("-")
