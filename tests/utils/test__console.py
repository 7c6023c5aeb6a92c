"""Tests of `tensorpack.utils._console`: streams and sinks that fail, bars in the way."""

import io
import os
import re

import pytest

from tensorpack.utils._console import (
    ForgivingStream,
)

MANY_LINES = """
from tensorpack.utils import logger
logger.set_logger_dir("run")
for i in range(300):
    logger.info("line %d", i)
print("The program has something to say, too.")
"""

FULL_DISK = """
import resource
from tensorpack.utils import logger
logger.set_logger_dir("run")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
for i in range(1000):
    logger.info("line %d", i)
logger.close_logger_dir()
"""

WITH_BAR = """
from tensorpack.utils import get_tqdm, logger
with get_tqdm(total=4, mininterval=0) as bar:
    bar.update(2)
    logger.info("in the middle")
    bar.update(2)
"""


@pytest.fixture
def closed_pipe():
    """The writing end of a pipe whose reading end is closed."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


def test_a_closed_pipe_ends_nothing(run_python, closed_pipe, tmp_path):
    done = run_python(MANY_LINES, stdout=closed_pipe)
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1 and "standard output (BrokenPipeError" in done.stderr
    assert "line 299\n" in (tmp_path / "run" / "log.log").read_text()


def test_a_bar_on_a_closed_pipe_ends_nothing(run_python, closed_pipe):
    done = run_python(WITH_BAR, stderr=closed_pipe)
    assert done.returncode == 0 and "in the middle" in done.stdout


def test_a_full_disk_is_reported_once(run_python, tmp_path):
    done = run_python(FULL_DISK)
    assert done.returncode == 0 and "line 999" in done.stdout
    assert done.stderr.count("\n") == 1
    path = tmp_path / "run" / "log.log"
    assert f"cannot write to {path} (OSError(27, 'File too large'))" in done.stderr
    assert 0 < path.stat().st_size <= 1000


def test_a_missing_standard_output_is_silence(run_python):
    done = run_python(
        "import sys; sys.stdout = None\nfrom tensorpack.utils import logger; logger.info('x')"
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_line_takes_the_bar_away_and_puts_it_back(run_in_terminal):
    code, screen = run_in_terminal(WITH_BAR, env={"NO_COLOR": "1"})
    assert code == 0
    before, after = re.split(r"\[\d{4} [0-9:]* @<string>:\d+\] in the middle\r\n", screen)
    assert re.search(r"50%\|#+\d? +\|2/4.*\r +\r$", before), "the bar is wiped before the line"
    assert after.startswith("\r 50%|#") and "100%|#" in after


@pytest.mark.parametrize(
    "env, coloured",
    [
        ({"TERM": "xterm"}, True),
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm", "NO_COLOR": ""}, False),
    ],
)
def test_colours_are_for_terminals_that_have_them(run_in_terminal, monkeypatch, env, coloured):
    monkeypatch.delenv("NO_COLOR", raising=False)
    code, screen = run_in_terminal(WITH_BAR, env=env)
    assert code == 0 and ("\033[32m" in screen) == coloured


def test_files_apart_are_not_mixed(run_python):
    done = run_python(WITH_BAR, text=False)
    assert re.fullmatch(rb"\[[^]]*\] in the middle\n", done.stdout)
    assert done.stderr.count(b"50%") == 1, "the bar is neither wiped nor drawn again"


class Failing(io.StringIO):
    """A stream that raises what it is given."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error

    def flush(self):
        raise self.error


@pytest.mark.parametrize(
    "stream",
    [None, *map(Failing, (OSError(28, "full"), ValueError("closed"), BrokenPipeError()))],
)
def test_a_forgiving_stream_drops_what_it_cannot_write_and_hides_no_other_error(stream):
    forgiving = ForgivingStream(stream)
    assert forgiving.write("four") == 4
    forgiving.flush()
    with pytest.raises(RuntimeError):
        ForgivingStream(Failing(RuntimeError())).write("x")
