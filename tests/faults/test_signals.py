"""Rows 10, 46 and 50: consoles that stop, break or are closed, and signals in the setup."""

import os
import re
import select
import subprocess
import sys
import time

import pytest

from tests.harness import NEVER, ROOT

from .run_case import CASES, INT, TERM, Surroundings


class Quiet:
    """A child whose output is read only when it is asked for.

    Args:
      case: what it runs.
      tmp_path: a directory for it alone.
      zygote: a copy of that runs the case, unless a shell starts it.
      redirections: of the shell that starts it.
      env: added to the environment.
    """

    def __init__(self, case, tmp_path, zygote=None, redirections="", env=()):
        self.around = Surroundings(tmp_path)
        self.log = tmp_path / "log"
        environ = dict(os.environ, PYTHONPATH=str(ROOT), **self.around.env, **dict(env))
        output, written = os.pipe()
        self._output = open(output, "rb", buffering=0)
        if zygote is None:
            self.process = subprocess.Popen(
                ["sh", "-c", f'exec "$@" {redirections}', "sh", sys.executable, "-u"]
                + ["-m", CASES, case, str(self.log)],
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=subprocess.STDOUT,
                env=environ,
            )
        else:
            self.process = zygote.start(CASES, [case, str(self.log)], environ, written)
            self.around.session = self.process.pid
        os.close(written)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.process.kill()
        self.process.wait()
        self.close()

    def close(self):
        """Closes what the output is read from."""
        self._output.close()

    def read_until(self, mark):
        """Reads no more than up to a mark."""
        text = b""
        while mark not in text:
            assert select.select([self._output], [], [], 60)[0], text
            new = self._output.read(1)
            assert new, text
            text += new

    def rest(self):
        """All that is still to be read, as text."""
        return self._output.read().decode(errors="replace")


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.fault_row(10)
def test_a_reader_that_goes_away_does_not_stop_the_run(tmp_path):
    with Quiet("finishes", tmp_path, redirections=f"2>{tmp_path / 'errors'}") as child:
        child.read_until(b"\n")
        child.close()  # as `| head -1` does
        assert child.process.wait(60) == 0
        assert child.around.leftovers() == []
    assert "Traceback" not in (tmp_path / "errors").read_text()
    assert "Training has finished!" in (child.log / "log.log").read_text()


@pytest.mark.timed
@pytest.mark.slow
@pytest.mark.fault_row(46)
@pytest.mark.parametrize("signals", [(INT,) * 4, (TERM,)], ids=["four", "grace"])
def test_a_reader_that_stops_does_not_keep_the_run_alive(signals, zygote, tmp_path):
    with Quiet("reader_stops", tmp_path, zygote) as child:
        child.read_until(b"PHASE talking")
        time.sleep(1.0)  # the pipe is full
        begin = time.monotonic()
        for signum in signals:
            child.process.send_signal(signum)
            time.sleep(0.1)
        assert child.process.wait(10) == 128 + signals[0]
        assert time.monotonic() - begin < 5.0
        assert child.around.leftovers() == []


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.fault_row(46)
def test_a_run_without_standard_descriptors_finishes(tmp_path):
    with Quiet("descriptors", tmp_path, redirections="<&- >&- 2>&-") as child:
        output = child.rest()
        assert child.process.wait(60) == 0, output
        assert child.around.leftovers() == []
    assert "Training has finished!" in (child.log / "log.log").read_text()
    links = (child.log / "descriptors").read_text().split()
    assert links == ["/dev/null"] * 3


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.fault_row(50)
@pytest.mark.parametrize("setups", [30, pytest.param(500, marks=pytest.mark.soak)])
def test_a_signal_in_the_setup_is_the_end_of_the_run_whenever_it_comes(setups, zygote, tmp_path):
    env = {"SETUPS": str(setups), "SPAN": "0.3"}
    with Quiet("signals_in_the_setup", tmp_path, zygote, env=env) as child:
        output = child.rest()
        assert child.process.wait(60) == 0, output
    ended = re.findall(r"PHASE \d+ ended by (.*)", output)
    assert len(ended) == setups, output
    assert set(ended) == {"TrainingInterrupted(130)", "TrainingInterrupted(143)"}, output
    assert not [word for word in NEVER if word in output], output
