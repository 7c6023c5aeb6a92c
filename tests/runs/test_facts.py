import ast
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import tensorpack
from tensorpack.runs.facts import machine_facts, process_facts
from tests.harness import ROOT
from tests.recorded_nvml import RecordedNvml


def test_what_is_said_about_the_process(monkeypatch, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("")
    monkeypatch.setattr(sys, "argv", [str(script), "--lr", "0.1", "--token", "abc"])
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    facts = process_facts()
    assert facts["command"][1:] == ["~/train.py", "--lr", "0.1", "--token", "***"]
    assert (facts["script"], facts["folder"]) == (os.path.join("~", "train.py"), "~")
    assert facts["process"] == os.getpid()
    assert facts["versions"]["tensorpack"] == tensorpack.__version__
    assert facts["versions"]["numpy"] == np.__version__
    assert facts["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))


@pytest.mark.parametrize(
    "given", ["train.py", "-u train.py 3", "-m train", "-m train 3", "-m tensorpack.tf1 train.py 3"]
)
def test_the_command_is_the_one_that_was_given(tmp_path, given):
    (tmp_path / "train.py").write_text(
        "from tensorpack.runs.facts import process_facts; print(process_facts()['command'])"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, *given.split()]
    output = subprocess.check_output(command, cwd=str(tmp_path), env=env, text=True)
    assert ast.literal_eval(output)[1:] == given.split()


def test_the_working_directory_may_be_deleted(tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "train.py", raising=False)
    monkeypatch.setattr(sys, "argv", ["train"])
    facts = process_facts()
    assert facts["folder"] is None and facts["script"] is None
    assert facts["process"] == os.getpid()


@pytest.mark.parametrize(
    "given, shown",
    [
        ("/home/me", "~"),
        ("/home/me/a b.py", "~/a b.py"),
        ("--data=/home/me/a,/home/me/b", "--data=~/a,~/b"),
        ("host:/home/me/a", "host:~/a"),
        ("/home/metoo/a", "/home/metoo/a"),
        ("/home/me.old", "/home/me.old"),
        ("/mnt/home/me/a", "/mnt/home/me/a"),
        ("s3://home/me", "s3://home/me"),
    ],
)
def test_arguments_name_no_user(monkeypatch, given, shown):
    monkeypatch.setenv("HOME", "/home/me/")
    monkeypatch.setattr(sys, "argv", ["a.py", given])
    assert process_facts()["command"][2:] == [shown]
    monkeypatch.setenv("HOME", "/")
    assert process_facts()["command"][2:] == [given]


def test_what_is_said_about_the_machine(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", RecordedNvml(None))
    facts = machine_facts()
    json.dumps(facts)
    assert facts["cores"] >= 1 and facts["memory"] > 1 << 20 and facts["cpu"]
    assert facts["gpus"] == []


def test_the_gpus_are_those_that_the_process_may_use(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", RecordedNvml(3))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert machine_facts()["gpus"] == [{"name": "NVIDIA H100", "memory": 80 << 30}] * 3
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert len(machine_facts()["gpus"]) == 1
