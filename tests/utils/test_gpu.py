"""Tests of `tensorpack.utils.gpu`."""

import os
import stat
import sys

import pytest

from tensorpack.utils import change_env
from tensorpack.utils.gpu import change_gpu, get_nr_gpu, get_num_gpu
from tests.recorded_nvml import RecordedNvml

VARIABLE = "CUDA_VISIBLE_DEVICES"


@pytest.mark.parametrize(
    "visible, count",
    [("", 0), ("-1", 0), ("0", 1), ("0,2", 2), (" 3 , 1,", 2), ("0,-1,1", 1), ("GPU-ab12", 1)],
)
def test_what_the_variable_names_is_counted(visible, count):
    with change_env(VARIABLE, visible):
        assert get_num_gpu() == get_nr_gpu() == count


@pytest.mark.parametrize(
    "val, text", [(0, "0"), ("0,1", "0,1"), ([2, 3], "2,3"), (-1, ""), ("-1", ""), ([], "")]
)
def test_change_gpu(val, text):
    before = os.environ.get(VARIABLE)
    with change_gpu(val):
        assert os.environ[VARIABLE] == text
    assert os.environ.get(VARIABLE) == before


@pytest.mark.parametrize("before", [None, "1,2"])
def test_change_gpu_to_none_leaves_them(before):
    with change_env(VARIABLE, before), change_gpu(None):
        assert os.environ.get(VARIABLE) == before


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Sets what nvidia-ml-py and nvidia-smi would find on the machine; None for no such thing."""

    def make(nvml=None, smi=None):
        monkeypatch.delenv(VARIABLE, raising=False)
        module = RecordedNvml(nvml)
        monkeypatch.setitem(sys.modules, "pynvml", module)
        monkeypatch.setenv("PATH", str(tmp_path))
        if smi is not None:
            program = tmp_path / "nvidia-smi"
            program.write_text(f"#!/bin/sh\n{smi}\n")
            program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return module

    return make


def test_nvml_counts_first_and_is_closed(machine):
    module = machine(nvml=3, smi="echo GPU 0: x")
    assert get_num_gpu() == 3 and module.open == 0


@pytest.mark.parametrize(
    "smi, count",
    [
        ("echo 'GPU 0: A (UUID: x)'; echo '  MIG 1g'; echo 'GPU 1: B (UUID: y)'", 2),
        ("echo 'GPU 0: broken'; exit 9", 0),
        (None, 0),
    ],
)
def test_nvidia_smi_counts_where_nvml_cannot_or_is_missing(machine, smi, count, monkeypatch):
    machine(smi=smi)
    assert get_num_gpu() == count
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert get_num_gpu() == count


def test_change_env_sets_removes_and_restores():
    name = "TENSORPACK_TEST_OF_CHANGE_ENV"
    with pytest.raises(KeyError):
        with change_env(name, 1):
            assert os.environ[name] == "1"
            with change_env(name, None):
                assert name not in os.environ
            assert os.environ[name] == "1"
            raise KeyError
    assert name not in os.environ
