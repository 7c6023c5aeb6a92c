import re
import signal
import socket
import urllib.request

from tests.harness import Child


def test_ctrl_c_ends_it_with_130(tmp_path):
    (tmp_path / "log.log").write_text("a line of the log\n")
    child = Child("-m", "tensorpack", "watch", tmp_path)
    child.wait_for("Ctrl-C ends this")
    url = re.search(r"http://127\.0\.0\.1:\d+/", child.output).group()
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert b"a line of the log" in answer.read()
    child.send(signal.SIGINT)
    assert child.end(timeout=20) == 130, child.output
    assert "Traceback" not in child.output


def test_what_cannot_be_used_is_said(tensorpack, tmp_path):
    done = tensorpack("watch", tmp_path)
    assert done.code == 2 and "has no run.json" in done.err
    (tmp_path / "log.log").write_text("")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        done = tensorpack("watch", tmp_path, "--port", taken.getsockname()[1])
    assert done.code == 2 and "Leave it out" in done.err
    assert tensorpack("watch", tmp_path, "--port", "70000").code == 2
