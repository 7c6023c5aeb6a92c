import sys

import pytest

from tensorpack.utils.nvml import NVMLContext
from tests.recorded_nvml import RecordedNvml


def test_a_gpu_tells_what_it_is_and_does(monkeypatch):
    module = RecordedNvml(2, [7])
    monkeypatch.setitem(sys.modules, "pynvml", module)
    with NVMLContext() as nvml:
        assert (nvml.num_devices(), module.open) == (2, 1)
        first, second = nvml.devices()
        assert second.name() == "NVIDIA H100"
        assert second.memory() == {"total": 80 << 30, "used": 1 << 30, "free": 79 << 30}
        assert first.utilization() == {"gpu": 7, "memory": 5}
        for each in (1, "1", "GPU-1"):
            assert nvml.device(each).utilization() == {"gpu": 17, "memory": 5}
    assert module.open == 0


def test_without_a_driver_it_says_what_to_try(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", RecordedNvml(None))
    with pytest.raises(RuntimeError, match="Shared Library Not Found. Does nvidia-smi work"):
        NVMLContext().__enter__()


def test_the_real_package_has_all_that_is_called():
    pynvml = pytest.importorskip("pynvml")
    for name in vars(RecordedNvml):
        assert name.startswith("__") or hasattr(pynvml, name)
