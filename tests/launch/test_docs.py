"""The first program of docs/launching.md, started as it says there."""

import re
import shlex
import subprocess
import sys

from tests.checks import ROOT

from .run_launcher import environment


def test_the_first_group_of_the_document(tmp_path):
    text = (ROOT / "docs" / "launching.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (_, code), (_, line), (_, printed) = blocks[:3]
    (tmp_path / "script.py").write_text(code, encoding="utf-8")
    assert line.startswith("python -m tensorpack.launch ")
    done = subprocess.run(
        [sys.executable, *shlex.split(line)[1:]],
        cwd=str(tmp_path),
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        timeout=30,
    )
    without_port = re.compile(r":\d+")
    shown, expected = (sorted(without_port.sub("", t).splitlines()) for t in (done.stdout, printed))
    assert (done.returncode, shown) == (0, expected)
