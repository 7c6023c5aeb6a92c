"""Tests of `tensorpack.utils._streams`."""

import io
import os
import sys

import pytest

from tensorpack.utils._streams import ForgivingStream, is_terminal, point_at_devnull, same_screen


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
