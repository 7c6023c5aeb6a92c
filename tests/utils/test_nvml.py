import sys

import pytest

from tensorpack.utils.nvml import NVMLContext, visible_devices
from tests.recorded_nvml import RecordedNvml


@pytest.fixture
def machine(monkeypatch):
    """Makes nvidia-ml-py find a machine, with the arguments of `RecordedNvml`."""

    def make(*args):
        module = RecordedNvml(*args)
        monkeypatch.setitem(sys.modules, "pynvml", module)
        return module

    return make


def test_a_gpu_tells_what_it_is_and_does(machine):
    module = machine(2, [7])
    with NVMLContext() as nvml:
        assert (nvml.num_devices(), module.open) == (2, 1)
        first, second = nvml.devices()
        assert (second.name(), second.uuid()) == ("NVIDIA H100", "GPU-1")
        assert second.memory() == {"total": 80 << 30, "used": 1 << 30, "free": 79 << 30}
        assert first.utilization() == {"gpu": 7, "memory": 5}
        assert [nvml.device(each).uuid() for each in (1, "1", "GPU-1")] == ["GPU-1"] * 3
    assert module.open == 0


@pytest.mark.parametrize("index", [2, "2", "GPU-2"])
def test_a_gpu_that_is_not_there_is_named(machine, index):
    machine(2)
    with NVMLContext() as nvml, pytest.raises(ValueError, match=f"no GPU {index!r} among the 2 of"):
        nvml.device(index)


def test_without_a_driver_it_says_what_to_try(machine):
    machine(None)
    with pytest.raises(RuntimeError, match="Shared Library Not Found. Does nvidia-smi work"):
        NVMLContext().__enter__()


def test_what_the_driver_cannot_tell_is_an_error(machine):
    machine(1, None)
    with NVMLContext() as nvml, pytest.raises(RuntimeError, match="Rates of NVML failed: Not Supp"):
        nvml.device(0).utilization()


def test_the_real_package_has_all_that_is_called():
    pynvml = pytest.importorskip("pynvml")
    for name in vars(RecordedNvml):
        assert name.startswith("__") or hasattr(pynvml, name)


@pytest.mark.parametrize(
    "value, found", [(None, None), ("", []), ("2, GPU-a,-1,0", ["2", "GPU-a"])]
)
def test_the_devices_of_cuda(monkeypatch, value, found):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if value is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert visible_devices() == found
