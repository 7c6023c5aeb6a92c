"""`tensorpack doctor`: each check, on machines that are as they should be and that are not."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tensorpack.command import doctor
from tensorpack.command.doctor import _Finding as Finding
from tensorpack.utils.optional import TENSORFLOW
from tests.checks import ROOT
from tests.conftest import HAS_TENSORFLOW

GOOD = {"msgpack": "1.1", "numpy": "2.4", "tabulate": "0.10", "tqdm": "4.70", "tensorflow": "2.21"}


def levels(findings):
    return [each.level for each in findings]


def test_packages_are_found_by_their_metadata(tmp_path):
    for name in "tf_keras-2.21.0.dist-info", "PyYAML-6.0-py3.7.egg-info", "other.txt":
        (tmp_path / name).mkdir()
    found = doctor._installed_packages([str(tmp_path), str(tmp_path / "none")])
    assert found == {"tf-keras": "2.21.0", "pyyaml": "6.0"}
    assert doctor._installed_packages(sys.path)["numpy"]


def test_python_and_the_packages_that_are_needed():
    assert levels(doctor._check_packages((3, 11), GOOD)) == ["ok", "ok"]
    assert levels(doctor._check_packages((3, 9), GOOD)) == ["warning", "ok"]
    less = {name: each for name, each in GOOD.items() if name not in ("tqdm", "numpy")}
    found = list(doctor._check_packages((3, 7), less))
    assert levels(found) == ["ok", "problem"] and found[1].advice == "pip install numpy tqdm"
    both = list(doctor._check_packages((3, 7), {**GOOD, "tensorflow-cpu": "2.21"}))[-1]
    assert both.level == "problem" and "pip uninstall -y tensorflow tensorflow-cpu" in both.advice
    less = {name: each for name, each in GOOD.items() if name != "tensorflow"}
    none = list(doctor._check_packages((3, 7), less))[-1]
    assert none.level == "warning" and f"pip install {TENSORFLOW}, or" in none.advice


def test_a_group_that_was_left(tensorpack, monkeypatch):
    monkeypatch.setattr(doctor, "_check_tensorflow", list)
    monkeypatch.setenv("TF_CONFIG", "{}")
    assert "warning  environment    TF_CONFIG makes " in tensorpack("doctor").out
    monkeypatch.setenv("TF_CONFIG", "")
    assert "TF_CONFIG" not in tensorpack("doctor").out


def test_the_page_cache_of_a_container_is_free_memory(tmp_path):
    files = {
        "proc/meminfo": "MemAvailable: 30000000 kB\n",
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": "8000000000\n",
        "sys/fs/cgroup/memory.current": "7900000000\n",
        "sys/fs/cgroup/memory.stat": "inactive_file 7000000000\n",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    def memory():
        return [x for x in doctor._check_machine(str(tmp_path)) if x.topic == "memory"]

    assert memory() == [Finding("ok", "memory", "7.1 GB are free")]
    (tmp_path / "sys/fs/cgroup/memory.stat").write_text("inactive_file 0\n")
    assert levels(memory()) == ["problem"]


def test_folders(tmp_path):
    found = doctor._check_folder("log folder", str(tmp_path / "new" / "run"))
    assert found.level in ("ok", "warning") and "can be written to" in found.text
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    found = doctor._check_folder("log folder", str(tmp_path / "file"))
    assert (found.level, "Not a directory" in found.text) == ("problem", True)
    found = doctor._check_folder("data folder", "/proc/none")
    assert found.level == "warning" and "cannot be written to" in found.text


def test_a_working_directory_that_is_deleted_is_said(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    found = doctor._check_folder("log folder", "train_log")
    text = "train_log cannot be written to: No such file or directory"
    assert (found.level, found.text) == ("problem", text)


@pytest.mark.parametrize(
    "facts, visible, level, word",
    [
        ({"gpus": ["/gpu:0"], "cuda": True}, None, "ok", "TensorFlow sees 1: /gpu:0"),
        ({"gpus": [], "cuda": True, "driver": False}, None, "ok", "no driver"),
        ({"gpus": [], "cuda": True}, "-1", "warning", "CUDA_VISIBLE_DEVICES=-1 hides them"),
        ({"gpus": [], "cuda": False}, None, "warning", "built for CPUs"),
        ({"gpus": [], "cuda": True}, "0", "warning", "Cannot dlopen some GPU libraries."),
    ],
)
def test_gpus_or_why_not(facts, visible, level, word):
    errors = "hello\nW0000 00:00:17 gpu_device.cc:2] Cannot dlopen some GPU libraries. Skip.\n"
    found = doctor._check_gpus({"driver": True, **facts}, visible, errors)
    assert found.level == level and word in found.text
    assert bool(found.advice) == (level == "warning")


def test_a_tensorflow_that_cannot_be_imported(monkeypatch):
    failing = [sys.executable, "-c", "raise ImportError('no library')"]
    run = subprocess.run
    monkeypatch.setattr(doctor.subprocess, "run", lambda command, **kw: run(failing, **kw))
    (finding,) = doctor._check_tensorflow()
    assert finding.level == "problem" and "ImportError: no library" in finding.text
    monkeypatch.setattr(doctor, "_IMPORT_SECONDS", 0.01)
    (finding,) = doctor._check_tensorflow()
    assert finding.level == "problem" and "did not end in time" in finding.text


@pytest.mark.parametrize(
    "code, errors, word",
    [
        (0, "a warning", ""),
        (1, "Traceback\nValueError: why\n\n", "ValueError: why"),
        (-4, "", "AVX"),
        (-9, "", "memory"),
        (-11, "a\nb", "SIGSEGV: b"),
    ],
)
def test_how_a_process_failed(code, errors, word):
    assert (word in doctor._why(code, errors)) and bool(word) == bool(doctor._why(code, errors))


def test_exit_codes_and_json(tensorpack, monkeypatch):
    found = [Finding("ok", "a", "b"), Finding("problem", "c", "d\n", "e")]
    monkeypatch.setattr(doctor, "_findings", lambda logdir: iter(found))
    done = tensorpack("doctor")
    assert (done.code, done.err) == (1, "")
    assert done.out == (
        "ok       a              b\nproblem  c              d\\n. e\n\n1 problems, 0 warnings.\n"
    )
    found.pop()
    done = tensorpack("doctor", "--json")
    assert done.code == 0
    assert json.loads(done.out) == {
        "problems": 0,
        "warnings": 0,
        "findings": [{"level": "ok", "topic": "a", "text": "b", "advice": ""}],
    }


@pytest.mark.one_row
@pytest.mark.slow
def test_here(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tensorpack", "doctor", "--json"],
        capture_output=True,
        text=True,
        cwd=str(tmp_path),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    findings = {each["topic"]: each for each in json.loads(done.stdout)["findings"]}
    assert list(tmp_path.iterdir()) == []
    assert findings["TensorFlow"]["level"] == ("ok" if HAS_TENSORFLOW else "warning")
    assert ("GPU" in findings) == HAS_TENSORFLOW


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")
def test_ctrl_c_ends_the_import_too(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "tensorpack", "doctor"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=str(tmp_path),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with process:
        for line in process.stdout:
            if "data folder" in line:
                break
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "tensorpack doctor: interrupted.\n")
    assert list(tmp_path.iterdir()) == []
