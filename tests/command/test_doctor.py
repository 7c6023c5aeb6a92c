"""`tensorpack doctor`: each check, on machines that are as they should be and that are not."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tensorpack.command import _doctor_checks as checks
from tensorpack.command import _doctor_tensorflow as tensorflow
from tensorpack.command import doctor
from tensorpack.command._doctor_checks import OK, PROBLEM, WARNING
from tests.checks import ROOT
from tests.conftest import HAS_TENSORFLOW

GOOD = {"msgpack": "1.1", "numpy": "2.4", "tabulate": "0.10", "tqdm": "4.70"}
MACHINE = checks.Machine(cores=8, memory=3e10, shared_memory=1e10, descriptors=4096)


def levels(findings):
    return [each.level for each in findings]


def test_packages_are_found_by_their_metadata(tmp_path):
    for name in "tf_keras-2.21.0.dist-info", "PyYAML-6.0-py3.7.egg-info", "other.txt":
        (tmp_path / name).mkdir()
    found = checks.installed_packages([str(tmp_path), str(tmp_path / "none")])
    assert found == {"tf-keras": "2.21.0", "pyyaml": "6.0"}
    assert checks.installed_packages(sys.path)["numpy"]


def test_python_and_the_packages_that_are_needed():
    assert levels(checks.check_python((3, 11, 2), GOOD)) == [OK, OK]
    assert levels(checks.check_python((3, 9, 0), GOOD)) == [WARNING, OK]
    less = {name: each for name, each in GOOD.items() if name not in ("tqdm", "numpy")}
    found = list(checks.check_python((3, 7, 1), less))
    assert levels(found) == [OK, PROBLEM]
    assert found[1].advice == "pip install numpy tqdm"


@pytest.mark.parametrize(
    "packages, expected, word",
    [
        ({}, [WARNING], "pip install tensorflow-cpu"),
        ({"tensorflow-cpu": "2.21.0"}, [], ""),
        ({"tensorflow": "2.10.0"}, [WARNING], "2.16"),
        ({"tensorflow": "2.21.0", "tensorflow-cpu": "2.21.0"}, [PROBLEM], "pip uninstall -y"),
        ({"tensorflow": "1.15.5", "numpy": "1.18.5", "protobuf": "3.20.3"}, [], ""),
        ({"tensorflow": "1.15.5", "numpy": "1.21.6"}, [PROBLEM], "pip install 'numpy<1.19'"),
        ({"tensorflow": "1.15.5", "protobuf": "4.24.4"}, [PROBLEM], "'protobuf<3.21'"),
    ],
)
def test_which_tensorflow(packages, expected, word):
    found = list(checks.check_tensorflow_packages(packages))
    assert levels(found) == expected
    assert all(word in each.advice for each in found)


@pytest.mark.parametrize(
    "name, value",
    [
        ("TF_USE_LEGACY_KERAS", "1"),
        ("TF_ENABLE_ONEDNN_OPTS", "0"),
        ("TF_CPP_MIN_LOG_LEVEL", "3"),
        ("OMP_NUM_THREADS", "1"),
        ("TF_CONFIG", "{}"),
        ("PYTHONOPTIMIZE", "1"),
    ],
)
def test_variables(name, value):
    (found,) = checks.check_environment({"HOME": "/", name: value}, {})
    assert found.level == WARNING and found.advice
    assert found.text.startswith(f"{name}={value} ")
    assert levels(checks.check_environment({"HOME": "/", name: ""}, {})) == [OK]


def test_the_machine():
    assert levels(checks.check_machine(MACHINE)) == [OK] * 4
    for change, expected in [
        ({"memory": 1e8}, PROBLEM),
        ({"memory": 1e9}, WARNING),
        ({"shared_memory": 64e6}, WARNING),
        ({"shared_memory": None}, WARNING),
        ({"descriptors": 256}, WARNING),
    ]:
        found = list(checks.check_machine(MACHINE._replace(**change)))
        assert sorted(levels(found)) == sorted([OK, OK, OK, expected])
        assert [each.advice for each in found if each.level == expected] != [""]
    here = checks.look_at_machine()
    assert here.cores >= 1 and here.descriptors > 0


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
    machine = checks.look_at_machine(str(tmp_path))
    assert machine.memory == 7.1e9
    assert PROBLEM not in levels(checks.check_machine(machine))


def test_folders(tmp_path):
    (found,) = checks.check_folder("log", str(tmp_path / "new" / "run"), PROBLEM)
    assert found.level in (OK, WARNING) and "can be written to" in found.text
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    (found,) = checks.check_folder("log", str(tmp_path / "file" / "run"), PROBLEM)
    assert (found.level, found.text) == (PROBLEM, f"{tmp_path}/file is not a folder")
    (found,) = checks.check_folder("log", "/proc/none", WARNING)
    assert found.level == WARNING and "cannot be written to" in found.text


def test_optional_packages():
    found = [each.advice for each in checks.check_optional({"opencv-python": "4", "lmdb": "1"})]
    assert "pip install h5py" in found
    assert not [each for each in found if "opencv" in each or "lmdb" in each]


@pytest.mark.parametrize(
    "facts, driver, visible, level, word",
    [
        ({"gpus": ["/gpu:0"], "cuda": True}, True, None, OK, "TensorFlow sees 1: /gpu:0"),
        ({"gpus": [], "cuda": True}, False, None, OK, "no driver"),
        ({"gpus": [], "cuda": True}, True, "-1", WARNING, "CUDA_VISIBLE_DEVICES=-1 hides them"),
        ({"gpus": [], "cuda": False}, True, None, WARNING, "built for CPUs"),
        ({"gpus": [], "cuda": True}, True, "0", WARNING, "Cannot dlopen some GPU libraries."),
    ],
)
def test_gpus_or_why_not(facts, driver, visible, level, word):
    errors = "hello\nW0000 00:00:17 gpu_device.cc:2] Cannot dlopen some GPU libraries. Skip.\n"
    found = tensorflow.check_gpus(facts, driver, visible, errors)
    assert found.level == level and word in found.text
    assert bool(found.advice) == (level == WARNING)


def test_a_training_that_fails_or_learns_nothing():
    result = {"steps": 10, "seconds": 2.0, "first": 3.0, "last": 0.5}
    probed = tensorflow.Probed([{}, result], 0, "")
    found = tensorflow.check_training(probed)
    assert (found.level, "(5 a second)" in found.text) == (OK, True)
    found = tensorflow.check_training(probed._replace(found=[{}, {**result, "last": 2.9}]))
    assert found.level == PROBLEM and "does not learn" in found.text
    for code, errors, word in [
        (1, "Traceback\nValueError: why\n\n", "failed: ValueError: why"),
        (-4, "", "AVX"),
        (-9, "", "memory"),
        (-11, "a\nb", "SIGSEGV; b"),
        (None, "", "did not end in time"),
    ]:
        found = tensorflow.check_training(tensorflow.Probed([{}], code, errors))
        assert found.level == PROBLEM and word in found.text


def test_exit_codes_and_json(tensorpack, monkeypatch):
    found = [checks.Finding(OK, "a", "b"), checks.Finding(PROBLEM, "c", "d\n", "e")]
    monkeypatch.setattr(doctor, "_findings", lambda args: iter(found))
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
    assert tensorpack("doctor", "--seconds", "0").code == 2


@pytest.mark.one_row
@pytest.mark.slow
def test_here_with_a_training(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tensorpack", "doctor", "--seconds", "1", "--json"],
        capture_output=True,
        text=True,
        cwd=str(tmp_path),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    findings = {each["topic"]: each for each in json.loads(done.stdout)["findings"]}
    assert list(tmp_path.iterdir()) == []
    if HAS_TENSORFLOW:
        assert findings["training"]["level"] == OK, findings["training"]
        assert findings["TensorFlow"]["level"] == OK
    else:
        assert findings["TensorFlow"]["level"] == WARNING
        assert "training" not in findings


@pytest.mark.one_row
@pytest.mark.slow
@pytest.mark.skipif(not HAS_TENSORFLOW, reason="needs TensorFlow")
def test_ctrl_c_ends_the_training_too(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "tensorpack", "doctor", "--seconds", "600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=str(tmp_path),
        env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
    )
    with process:
        for line in process.stdout:
            if "data folder" in line:
                break
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (130, "tensorpack doctor: interrupted.\n")
    assert list(tmp_path.iterdir()) == []
