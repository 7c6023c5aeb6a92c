import json
import os
import re
import signal
import socket
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from tensorpack.command.watch import PageServer
from tests.harness import Child


@contextmanager
def serving(directory):
    with PageServer(str(directory)) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.05])
        thread.start()
        try:
            yield server, f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


def write(directory, cost, **attempt):
    (directory / "stats.json").write_text(json.dumps([{"global_step": 1, f"cost{cost}": cost}]))
    (directory / "run.json").write_text(json.dumps({"attempts": [attempt]}))


def read(url, **headers):
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def refused(*args, **options):
    """The code and the text with which a request is refused."""
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(*args, timeout=10, **options).close()
    with error.value as answer:
        return answer.code, answer.read().decode()


def test_the_page_is_made_again_each_time_and_loads_itself_again(tmp_path):
    write(tmp_path, 1, host=socket.gethostname(), process=os.getpid())
    with serving(tmp_path) as (_, url):
        first = read(url)
        assert "cost1" in first and '<meta http-equiv="refresh" content="5">' in first
        assert "href" not in first  # there is no other page
        write(tmp_path, 2, result="finished")
        second = read(url.replace("127.0.0.1", "localhost"))
        assert "cost2" in second and '<meta http-equiv="refresh" content="60">' in second
    with pytest.raises(OSError):
        read(url)


@pytest.mark.parametrize(
    "path, headers, code",
    [
        ("run.json", {}, 404),
        ("../stats.json", {}, 404),
        ("?a=1", {}, 404),
        ("", {"Host": "evil.example:80"}, 403),
        ("run.json", {"Host": "localhost"}, 404),  # as a browser says it at port 80
    ],
)
def test_nothing_else_is_served(tmp_path, path, headers, code):
    write(tmp_path, 1)
    with serving(tmp_path) as (_, url):
        assert refused(urllib.request.Request(url + path, headers=headers))[0] == code
        assert refused(url, data=b"x")[0] == 501


def test_a_directory_that_has_gone_is_said(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    write(run, 1)
    with serving(run) as (_, url):
        for each in run.iterdir():
            each.unlink()
        code, text = refused(url)
    assert code == 503 and "has no run.json" in text


def test_a_browser_that_says_nothing_keeps_nothing_from_ending(tmp_path, monkeypatch):
    monkeypatch.setattr("tensorpack.command.watch._Request.timeout", 0.2)
    write(tmp_path, 1)
    with serving(tmp_path) as (server, url):
        with socket.create_connection(("127.0.0.1", server.server_port)):
            assert "cost1" in read(url)


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
    assert done.code == 2 and "Leave --port out" in done.err
    assert tensorpack("watch", tmp_path, "--port", "70000").code == 2
