"""Groups of small programs under `python -m tensorpack.launch`: real processes, real signals."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys

import pytest

from tensorpack.launch.__main__ import main

from .run_launcher import environment, is_gone, launch, started

COUNTS = """
    heard = []
    def note(signum, frame):
        heard.append(signum)
        print("heard", signum)
        if len(heard) == LEAVE_AT:
            sys.exit(128 + signum)
    signal.signal(signal.SIGINT, note)
    signal.signal(signal.SIGTERM, note)
    print("ready", os.getpid())
    while True:
        time.sleep(0.05)
"""


def pids(text):
    return [int(pid) for pid in re.findall(r"\] ready (\d+)", text)]


def test_a_group_runs_and_ends_in_order(tmp_path):
    body = """
    import json
    print(json.dumps([me.as_dict(), sys.argv[1:], os.environ["OMP_NUM_THREADS"]]))
    print("news", file=sys.stderr)
    if me.job == "ps":
        print("serving", os.getpid())
        time.sleep(60)
    time.sleep(0.3 * me.index)
    print("done")
    """
    options = ["--workers", "2", "--ps", "1", "--"]
    done = launch(tmp_path, body, *options, arguments=["--workers", "-x", "--"])
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    heads = {line.partition("] ")[0] + "]": line for line in lines if "{" in line}
    assert sorted(heads) == ["[ps 0]", "[worker 0]", "[worker 1]"]
    texts = {line.partition("] ")[2] for line in heads.values()}
    ((cluster, arguments, threads),) = map(json.loads, texts)
    assert (len(cluster["worker"]), len(cluster["ps"])) == (2, 1)
    assert arguments == ["--workers", "-x", "--"] and int(threads) >= 1
    assert lines[-1] == "[worker 1] done" and "[worker 0] done" in lines
    assert sorted(line for line in done.stderr.splitlines() if line.endswith("news")) == [
        "[ps 0] news",
        "[worker 0] news",
        "[worker 1] news",
    ]
    assert f"OMP_NUM_THREADS = TF_NUM_INTRAOP_THREADS = {threads}: 2 workers" in done.stderr
    (server,) = re.findall(r"serving (\d+)", done.stdout)
    assert is_gone(server)


def test_modules(tmp_path):
    (tmp_path / "tool.py").write_text("import sys; print(__name__, sys.argv[1:])")
    args = [sys.executable, "-m", "tensorpack.launch", "--workers", "1", "-m", "tool", "--ps", "-m"]
    done = subprocess.run(
        args, env=environment(), cwd=str(tmp_path), stdout=subprocess.PIPE, timeout=30, text=True
    )
    assert (done.returncode, done.stdout) == (0, "[worker 0] __main__ ['--ps', '-m']\n")


class TestFailures:
    def test_one_ends_the_group_with_its_lines_and_code(self, tmp_path):
        body = """
        if me.name == "worker 1":
            print("first words")
            time.sleep(0.2)
            sys.exit("out of paper" if len(sys.argv) < 2 else int(sys.argv[1]))
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60)
        """
        options = ["--workers", "2", "--ps", "1", "--grace", "0.3"]
        done = launch(tmp_path, body, *options)
        assert done.returncode == 1
        assert re.search(r"worker 1 \(127.0.0.1:\d+\) exited with code 1 after", done.stderr)
        *_, head, words, paper = done.stderr.splitlines()
        assert head.startswith("[launch] First to fail: worker 1 (127.0.0.1:")
        assert (words, paper) == ("[launch]     first words", "[launch]     out of paper")
        assert launch(tmp_path, body, *options, arguments=["77"]).returncode == 77

    def test_a_signal_is_128_and_its_number(self, tmp_path):
        body = "os.kill(os.getpid(), signal.SIGKILL) if me.index else time.sleep(60)"
        done = launch(tmp_path, body, "--workers", "2")
        assert done.returncode == 137 and ") was ended by SIGKILL" in done.stderr
        assert done.stderr.endswith("It has printed nothing.\n")

    def test_the_cause_is_told_from_what_follows_of_it(self, tmp_path):
        """Worker 0 fails, but takes longer to end than worker 1, which misses it."""
        body = """
        import threading
        if me.index == 0:
            os.close(os.open(sys.argv[1], os.O_CREAT))
            def end_slowly():
                time.sleep(0.2)
                print(*["closing"] * 60, sep="\\n")
                time.sleep(2)
            threading.Thread(target=end_slowly).start()
            raise ValueError("the cause")
        while not os.path.exists(sys.argv[1]):
            time.sleep(0.05)
        time.sleep(0.3)
        sys.exit("worker 0 is gone")
        """
        done = launch(tmp_path, body, "--workers", "2", arguments=[str(tmp_path / "failing")])
        assert done.returncode == 1
        assert "] worker 1 (" in done.stderr and "First to fail: worker 0 (" in done.stderr

    def test_who_has_missed_another_is_not_the_cause(self, tmp_path):
        body = """
        if me.index == 0:
            time.sleep(0.4)
            sys.exit(3)
        sys.stderr.write("Traceback (most recent call last):\\n")
        sys.exit("tensorpack.train.group.peers.PeerLost: worker 0 (...) has failed")
        """
        done = launch(tmp_path, body, "--workers", "2")
        assert done.returncode == 3 and "First to fail: worker 0" in done.stderr

    def test_a_server_that_fails(self, tmp_path):
        body = "sys.exit(5) if me.job == 'ps' else time.sleep(60)"
        done = launch(tmp_path, body, "--workers", "1", "--ps", "1")
        assert done.returncode == 5 and "First to fail: ps 0" in done.stderr


class TestSignals:
    @pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
    def test_each_worker_hears_it_once_and_servers_end_last(self, tmp_path, signum):
        body = COUNTS.replace("LEAVE_AT", "1")
        body = body.replace("sys.exit", "time.sleep(0.3 * (me.job == 'worker')); sys.exit")
        with started(tmp_path, body, "--workers", "2", "--ps", "1") as process:
            os.killpg(process.pid, signum)  # as Ctrl-C at a terminal does
            text = process.stdout.read()
            assert process.wait() == 128 + signum
        heard = re.findall(r"\[(\w+ \d)\] heard (\d+)", text)
        assert sorted(heard[:2]) == [(f"worker {n}", str(int(signum))) for n in (0, 1)]
        assert heard[2:] == [("ps 0", "15")]
        assert "First to fail" not in text and all(map(is_gone, pids(process.before)))

    def test_second_and_third(self, tmp_path):
        with started(tmp_path, COUNTS.replace("LEAVE_AT", "9"), "--workers", "2") as process:
            text = ""
            for number in 1, 2:
                process.send_signal(signal.SIGINT)
                while text.count("] heard") < 2 * number:
                    text += process.stdout.readline()
            process.send_signal(signal.SIGINT)
            text += process.stdout.read()
            assert process.wait() == 130
        assert text.count("] heard 2") == 4 and "all processes are killed" in text

    def test_the_grace_time_ends(self, tmp_path):
        body = COUNTS.replace("LEAVE_AT", "9")
        with started(tmp_path, body, "--workers", "1", "--grace", "0.3") as process:
            process.terminate()
            assert "was ended by SIGKILL while it was stopped" in process.stdout.read()
            assert process.wait() == 143

    def test_a_stopped_worker_is_woken(self, tmp_path):
        with started(tmp_path, COUNTS.replace("LEAVE_AT", "1"), "--workers", "1") as process:
            os.kill(pids(process.before)[0], signal.SIGSTOP)
            process.terminate()
            assert "heard 15" in process.stdout.read()
            assert process.wait() == 143

    def test_all_die_with_the_launcher(self, tmp_path):
        with started(tmp_path, COUNTS.replace("LEAVE_AT", "9"), "--workers", "2") as process:
            process.kill()
            assert all(map(is_gone, pids(process.before)))

    def test_what_a_worker_leaves_running_ends_with_it(self, tmp_path):
        body = """
        import subprocess
        child = subprocess.Popen(["sleep", "60"])
        print("ready", child.pid)
        """
        with started(tmp_path, body, "--workers", "1") as process:
            assert process.wait(10) == 0
            assert is_gone(pids(process.before)[0])


class TestOutput:
    def test_nothing_is_lost_or_mixed(self, tmp_path):
        body = """
        for i in range(20000):
            print(me.index, i)
        sys.stdout.write("no end")
        """
        done = launch(tmp_path, body, "--workers", "2", env={"PYTHONUNBUFFERED": ""})
        lines = done.stdout.splitlines()
        for index in 0, 1:
            expected = [f"[worker {index}] {index} {i}" for i in range(20000)]
            expected.append(f"[worker {index}] no end")
            assert [line for line in lines if line.startswith(f"[worker {index}]")] == expected
        assert len(lines) == 40002

    def test_hostile_output(self, tmp_path):
        body = """
        out = sys.stdout.buffer
        if me.index == 0:
            out.write(b"x" * 10_000_000)
        elif me.index == 1:
            out.write(bytes(range(256)) + b"\\n")
            for i in range(101):
                out.write(b"\\r%d%%" % i)
            out.write(b"\\nlast\\r\\n\\033[A\\033[31mred\\n")
        else:
            os.close(1)
            time.sleep(0.3)
            os.write(2, b"still here")
        """
        with open(str(tmp_path / "out"), "wb") as file:
            done = launch(tmp_path, body, "--workers", "3", stdout=file)
        assert done.returncode == 0 and done.stderr.endswith("[worker 2] still here\n")
        lines = (tmp_path / "out").read_bytes().split(b"\n")
        assert sum(line.count(b"x") for line in lines if line.startswith(b"[worker 0] ")) == 10**7
        tail = [line for line in lines if line.startswith(b"[worker 1] ")][-3:]
        assert tail == [b"[worker 1] 100%", b"[worker 1] last", b"[worker 1] \033[31mred"]
        assert b"[worker 1] " + bytes(range(14, 256)) in lines

    @pytest.mark.parametrize("plain", ["", "1"])
    def test_names_are_coloured_at_a_terminal(self, tmp_path, plain):
        mine, theirs = pty.openpty()
        body = "print('out'); print('err', file=sys.stderr)"
        env = {"NO_COLOR": plain}
        launch(tmp_path, body, "--workers", "2", env=env, stdout=theirs, stderr=theirs)
        os.close(theirs)
        lines = os.read(mine, 10000).decode().split("\r\n")
        os.close(mine)
        names = ["[worker 0]", "[worker 1]"]
        if not plain:
            names = [f"\033[{colour}m{name}\033[0m" for colour, name in zip((36, 32), names)]
        for name in names:  # two streams on one screen keep their order
            assert [line for line in lines if name in line] == [f"{name} out", f"{name} err"]

    @pytest.mark.parametrize("broken", ["pipe", "disk"])
    def test_an_output_that_breaks_ends_nothing(self, tmp_path, broken):
        body = """
        for i in range(5000):
            print("line", i)
        open(sys.argv[1], "w").close()
        """
        if broken == "disk":
            sink = os.open("/dev/full", os.O_WRONLY)
        else:
            reader, sink = os.pipe()
            os.close(reader)
        proof = tmp_path / "proof"
        done = launch(tmp_path, body, "--workers", "1", arguments=[str(proof)], stdout=sink)
        os.close(sink)
        assert done.returncode == 0 and proof.exists()
        assert done.stderr.count("lines of the processes are lost") == (broken == "disk")


class TestRestarts:
    def test_until_it_succeeds(self, tmp_path):
        body = """
        restart = int(os.environ["TENSORPACK_RESTART"])
        print("start", restart, me.address)
        sys.exit(3 if me.index == 1 and restart < 1 else 0)
        """
        done = launch(tmp_path, body, "--workers", "2", "--max-restarts", "5")
        assert done.returncode == 0, done.stderr
        found = re.findall(r"\[worker 1\] start (\d) (\S+)", done.stdout)
        assert [number for number, _ in found] == ["0", "1"]
        assert "The group is restarted in 1 s (1 of 5)." in done.stderr

    def test_not_after_a_wrong_command_line(self, tmp_path):
        done = launch(tmp_path, "sys.exit(2)", "--workers", "1", "--max-restarts", "5")
        assert done.returncode == 2 and "restarted" not in done.stderr

    def test_ctrl_c_in_the_pause(self, tmp_path):
        body = "print('ready'); sys.exit(1)"
        with started(tmp_path, body, "--workers", "1", "--max-restarts", "5") as process:
            while "restarted in" not in process.before:
                process.before += process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 130  # five pauses are longer


class TestCommandLine:
    @pytest.mark.parametrize(
        "args, message",
        [
            ([], "give a script, or -m and a module"),
            (["-m"], "-m needs the name of a module"),
            (["missing.py"], "the script 'missing.py' does not exist"),
            (["--workers", "1_0", __file__], "'1_0' is not a number of 1 to"),
            (["--grace", "nan", __file__], "'nan' is not a number of seconds"),
        ],
    )
    def test_what_is_wrong_is_said(self, args, message, capsys):
        with pytest.raises(SystemExit) as error:
            main(args)
        said = capsys.readouterr().err
        assert error.value.code == 2 and message in said and not said.endswith("..\n")

    def test_a_port_that_is_taken(self, tmp_path):
        with socket.socket() as server:
            server.bind(("", 0))
            server.listen(1)
            port = server.getsockname()[1]
            done = launch(tmp_path, "", "--port", str(port))
        assert done.returncode == 1
        assert f"port {port} of worker 0 cannot be used" in done.stderr
