"""Groups of small programs under `python -m tensorpack.launch`: real processes, real signals."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tensorpack.launch.__main__ import main
from tests.checks import ROOT
from tests.processes import gone, wait_until

PRELUDE = """
import os, signal, subprocess, sys, time
from tensorpack.utils.cluster import Cluster
me = Cluster.from_environment()
"""
HEARS = """
    def note(signum, frame):
        print("heard", signum)
        if LEAVES:
            time.sleep(0.3 * (me.job == "worker"))
            sys.exit(128 + signum)
    for each in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
        signal.signal(each, note)
    print("ready", os.getpid())
    while True:
        time.sleep(0.05)
"""
LEAVES, STAYS = HEARS.replace("LEAVES", "True"), HEARS.replace("LEAVES", "False")


def start(path, body, *options, arguments=(), **streams):
    """Starts a group of a script that knows itself as the cluster `me`, with few variables."""
    (path / "script.py").write_text(PRELUDE + textwrap.dedent(body), encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, "-m", "tensorpack.launch", *options, "script.py", *arguments],
        cwd=str(path),
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        text=True,
        start_new_session=True,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams},
    )


def launch(path, body, *options, **more):
    """Runs a group to its end; returns its exit code, output and errors."""
    with start(path, body, *options, **more) as process:
        out, err = process.communicate(timeout=30)
    return process.returncode, out, err


@contextlib.contextmanager
def started(path, body, *options):
    """Starts a group; yields it, its output merged, and the ids of processes printed as "ready"."""
    with start(path, body, *options, stderr=subprocess.STDOUT) as process:
        pids = []
        while len(pids) < sum(map(int, options[1:4:2])):  # workers and servers
            line = process.stdout.readline()
            assert line
            pids += map(int, re.findall(r"\] ready (\d+)", line))
        try:
            yield process, pids
        finally:
            process.kill()


def are_gone(pids):
    """Waits until processes have ended, which they must within five seconds; returns True."""
    return wait_until(lambda: all(map(gone, pids)), 5)


def test_a_group_runs_and_the_servers_end_after_the_last_worker(tmp_path):
    body = """
    print("has", sys.argv[1:], sys.stdin.read(), os.getpid())
    print("news", file=sys.stderr)
    time.sleep(60 if me.job == "ps" else 0.3 * me.index)
    print("done")
    """
    words = ["--workers", "-x", "--"]
    code, out, err = launch(tmp_path, body, "--workers", "2", "--ps", "1", "--", arguments=words)
    found = re.findall(r"^\[(\w+ \d)\] has \['--workers', '-x', '--'\]  (\d+)$", out, re.M)
    assert code == 0 and out.endswith("[worker 1] done\n") and are_gone([int(p) for _, p in found])
    assert sorted(name for name, _ in found) == ["ps 0", "worker 0", "worker 1"]
    assert sorted(err.splitlines()) == [f"[{name}] news" for name, _ in sorted(found)]


def test_the_first_group_of_the_document(tmp_path):
    text = (ROOT / "docs" / "distributed.md").read_text(encoding="utf-8")
    text = text.partition("## Starting the processes\n")[2]
    (_, code), (_, line), (_, printed) = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)[:3]
    code, *shown, _ = launch(tmp_path, code, *line.split()[3:-1])
    shown, expected = (sorted(re.sub(r":\d+", "", t).splitlines()) for t in (*shown, printed))
    assert (code, shown) == (0, expected)


def test_modules(tmp_path):
    (tmp_path / "tool.py").write_text("import sys; print(__name__, sys.argv[1:])")
    code, out, _ = launch(tmp_path, "", "-m", "tool", "--ps", "-m")
    assert (code, out) == (0, "[worker 0] __main__ ['--ps', '-m', 'script.py']\n")


@pytest.mark.parametrize(
    "end, code, how",
    [("sys.exit(1)", 1, "exited with code 1"), ("os.kill(0, 9)", 137, "was killed by SIGKILL")],
)
def test_one_that_fails_ends_all_with_its_code_and_a_line(end, code, how, tmp_path):
    body = f"""
    if me.name == "worker 1":
        {end}
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)
    """
    found, _, err = launch(tmp_path, body, "--workers", "2", "--ps", "1", "--grace", "0.3")
    line = rf"\[launch\] First to end: worker 1 \(127.0.0.1:\d+\) {how} after \d+\.\d s\.\n"
    assert found == code and re.fullmatch(line + r"\[launch\] Killed: worker 0, ps 0\.\n", err)


def test_the_others_have_a_second_and_are_not_named(tmp_path):
    body = """
    if me.job == "ps":
        sys.exit(5)
    time.sleep(0.5)
    if me.index:
        sys.exit(6)
    signal.signal(signal.SIGTERM, lambda *args: sys.exit(print("in order")))
    time.sleep(60)
    """
    code, out, err = launch(tmp_path, body, "--workers", "2", "--ps", "1")
    assert code == 5 and re.findall(r"First to end: (\w+ \d)", err) == ["ps 0"]
    assert out == "[worker 0] in order\n"


class TestSignals:
    @pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_each_worker_hears_it_once_and_servers_end_last(self, signum, tmp_path):
        with started(tmp_path, LEAVES, "--workers", "2", "--ps", "1") as (process, pids):
            os.killpg(process.pid, signum)  # as Ctrl-C at a terminal does
            text = process.stdout.read()
            assert process.wait() == 128 + signum
        heard = re.findall(r"\[(\w+ \d)\] heard (\d+)", text)
        assert sorted(heard[:2]) == [(f"worker {n}", str(int(signum))) for n in (0, 1)]
        assert heard[2:] == [("ps 0", "15")] and "First to end" not in text and are_gone(pids)

    def test_a_second_one_is_passed_on_and_a_third_kills(self, tmp_path):
        with started(tmp_path, STAYS, "--workers", "1") as (process, pids):
            for _ in range(2):
                process.send_signal(signal.SIGINT)
                while "] heard" not in process.stdout.readline():
                    pass
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 130 and are_gone(pids)
            assert "Killed: worker 0." in process.stdout.read()

    def test_a_stopped_worker_is_woken_and_a_deaf_one_killed(self, tmp_path):
        options = ["--workers", "1", "--ps", "0", "--grace", "1"]
        with started(tmp_path, STAYS, *options) as (process, pids):
            os.kill(pids[0], signal.SIGSTOP)
            process.terminate()
            text = process.stdout.read()
            assert "] heard 15" in text and "Killed: worker 0." in text
            assert process.wait() == 143 and are_gone(pids)

    def test_of_several_seen_at_once_one_that_was_killed_is_the_first(self, tmp_path):
        with started(tmp_path, LEAVES, "--workers", "2") as (process, pids):
            process.send_signal(signal.SIGSTOP)
            os.kill(pids[0], signal.SIGTERM)
            os.kill(pids[1], signal.SIGKILL)
            assert are_gone(pids)
            process.send_signal(signal.SIGCONT)
            assert process.wait(10) == 137 and "by SIGKILL after" in process.stdout.read()

    def test_all_die_with_the_launcher(self, tmp_path):
        with started(tmp_path, STAYS, "--workers", "2", "--ps", "1") as (process, pids):
            process.kill()
            assert are_gone(pids)

    @pytest.mark.parametrize("session", [False, True])
    def test_what_a_worker_leaves_running(self, session, tmp_path):
        body = f"print('ready', subprocess.Popen(['sleep', '60'], start_new_session={session}).pid)"
        with started(tmp_path, body, "--workers", "1") as (process, pids):
            assert process.wait(10) == 0
            if session:
                os.kill(pids[0], signal.SIGKILL)
            assert are_gone(pids)


class TestOutput:
    def test_nothing_is_lost_or_mixed(self, tmp_path):
        body = """
        sys.stdout = open(1, "w")  # with a buffer
        for i in range(20000):
            print(me.index, i)
        print("x" * 3000000)
        """
        lines = launch(tmp_path, body, "--workers", "2")[1].splitlines()
        for name in "[worker 0] ", "[worker 1] ":
            found = [line for line in lines if line.startswith(name)]
            assert found[:20000] == [f"{name}{name[8]} {i}" for i in range(20000)]
            assert "".join(found).count("x") == 3000000

    def test_of_a_progress_bar_some_states_are_shown(self, tmp_path):
        body = """
        for i in range(101):
            print("%3d%%\\r" % i, end="", flush=True)
            time.sleep(0.005)
        sys.stdout.write("\\nlast\\r    \\r")
        """
        first, *rest = launch(tmp_path, body)[1].splitlines()
        # Not always 0%: a busy machine reads late.
        assert re.fullmatch(r"\[worker 0\] +\d+%", first)
        assert rest[-2:] == ["[worker 0] 100%", "[worker 0] last"] and len(rest) < 20

    def test_streams_on_one_screen_keep_their_order(self, tmp_path):
        body = "[print(me.index, i, file=(sys.stdout, sys.stderr)[i % 2]) for i in range(20000)]"
        _, out, _ = launch(tmp_path, body, "--workers", "2", stderr=subprocess.STDOUT)
        assert re.findall(r"\[worker 1\] 1 (\d+)", out) == list(map(str, range(20000)))

    def test_a_reader_that_is_gone_ends_nothing(self, tmp_path):
        body = """
        print("a line\\n" * 100000)
        print("a line\\n" * 100000, file=sys.stderr)
        sys.exit(3)
        """
        reader, sink = os.pipe()
        os.close(reader)
        code, *_ = launch(tmp_path, body, stdout=sink, stderr=sink)
        os.close(sink)
        assert code == 3

    def test_a_reader_that_pauses_does_not_hinder_signals(self, tmp_path):
        body = LEAVES.replace("while True", "while print('x' * 1000) or True").replace("0.05", "0")
        with started(tmp_path, body, "--workers", "1") as (process, pids):
            time.sleep(0.5)  # all pipes are full
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 130 and are_gone(pids)


@pytest.mark.parametrize(
    "args, said",
    [("-m", "give a script"), ("--workers 0 x", "from 1 on"), ("--port 70000 x", "cannot be used")],
)
def test_a_wrong_command_line(args, said, capsys):
    with pytest.raises(SystemExit) as error:
        main(args.split())
    assert error.value.code == 2 and said in capsys.readouterr().err
