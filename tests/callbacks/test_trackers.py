import sys
import types

import pytest

from tensorpack import callbacks as cb
from tensorpack.callbacks import prof
from tensorpack.compat import tfv1 as tf
from tests.callbacks.driver import MiniTrainer, log_lines, when
from tests.contracts.callback import CallbackContract, contract_of
from tests.processes import wait_until
from tests.recorded_nvml import RecordedNvml

TestGPUMemoryTracker = contract_of(cb.GPUMemoryTracker)
TestHostMemoryTracker = contract_of(cb.HostMemoryTracker)


@pytest.fixture
def machine(monkeypatch):
    """Makes nvidia-ml-py find a machine, with the arguments of `RecordedNvml`."""

    def make(*args):
        module = RecordedNvml(*args)
        monkeypatch.setitem(sys.modules, "pynvml", module)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        return module

    return make


def train(callback, **options):
    """Returns the scalars of a run with a callback, as (global_step, name, value)."""
    tape = []
    monitor = cb.MonitorBase()
    monitor.process_scalar = lambda name, val: tape.append((monitor.global_step, name, val))
    MiniTrainer([callback], [monitor], **options).train()
    return tape


class TestGPUUtilizationTracker(CallbackContract):
    @pytest.fixture(autouse=True)
    def gpus(self, machine):
        machine(2)

    def make_callback(self):
        return cb.GPUUtilizationTracker()


def test_a_short_epoch_has_one_sample_at_its_end(machine):
    # the first percent goes to the check before the training
    module = machine(2, [1, 20, 40])
    assert train(cb.GPUUtilizationTracker(), max_epoch=2) == [
        (2, "GPUUtil/0", 20.0),
        (2, "GPUUtil/1", 30.0),
        (4, "GPUUtil/0", 40.0),
        (4, "GPUUtil/1", 50.0),
    ]
    assert module.open == 0


def test_a_long_epoch_has_the_mean_of_its_samples(machine, monkeypatch):
    monkeypatch.setattr(prof, "_SAMPLE_SECONDS", 0.001)
    tracker, monitor = cb.GPUUtilizationTracker([0]), cb.MonitorBase()
    machine(1, [1, 10, 20, 60])
    monitor.process_scalar = lambda name, val: tape.append((name, val))
    tape = []

    def wait(callback):
        wait_until(lambda: len(tracker._samples) >= 3)

    MiniTrainer([tracker, when(trigger_step=wait)], [monitor], steps_per_epoch=1).train()
    ((name, percent),) = tape
    assert name == "GPUUtil/0" and 30 <= percent < 60


def test_the_visible_devices_are_the_default(machine, monkeypatch):
    machine(2, [20])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1")
    assert train(cb.GPUUtilizationTracker()) == [(2, "GPUUtil/GPU-1", 30.0)]


def test_where_there_is_no_gpu_utilization_is_not_tracked(machine, monkeypatch, tmp_path, capsys):
    machine(None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert train(cb.GPUUtilizationTracker()) == []
    assert log_lines(capsys) == ["GPUUtilizationTracker does nothing: this process sees no GPU."]


def test_a_gpu_that_is_asked_for_must_be_there(machine):
    machine(2)
    with pytest.raises(RuntimeError, match=r"HandleByIndex\(5\) of NVML: Invalid"):
        train(cb.GPUUtilizationTracker([5]))


def test_a_driver_that_fails_later_costs_one_warning(machine, capsys):
    module = machine(1)
    breaking = when(before_epoch=lambda callback: setattr(module, "busy", None))
    tracker, monitor = cb.GPUUtilizationTracker(), cb.MonitorBase()
    MiniTrainer([breaking, tracker], [monitor], max_epoch=3).train()
    assert log_lines(capsys) == [
        "GPUUtilizationTracker stops: nvmlDeviceGetUtilizationRates(0) of NVML: Not Supported. "
        "Does nvidia-smi work?"
    ]
    assert module.open == 0


class OneGpu:
    """A session of TensorFlow with a GPU more, and what was in use on it."""

    def __init__(self, monkeypatch, peaks):
        monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: True)
        monkeypatch.setattr(prof, "gpu_memory_peak", lambda device: lambda sess: peaks.pop(0))
        listed = tf.Session.list_devices
        gpu = types.SimpleNamespace(device_type="GPU")
        monkeypatch.setattr(tf.Session, "list_devices", lambda sess: [*listed(sess), gpu])


def test_the_peak_of_memory_is_put_every_epoch(monkeypatch):
    OneGpu(monkeypatch, [0, 3 << 20, 5 << 20])
    assert train(cb.GPUMemoryTracker(), max_epoch=2) == [
        (2, "PeakMemory(MB)/gpu:0", 3.0),
        (4, "PeakMemory(MB)/gpu:0", 5.0),
    ]


@pytest.mark.parametrize("built_with_cuda", [False, True])
def test_where_tensorflow_has_no_gpu_memory_is_not_tracked(built_with_cuda, monkeypatch, capsys):
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: built_with_cuda)
    monkeypatch.setattr(prof, "gpu_memory_peak", lambda device: "not to be asked")
    assert train(cb.GPUMemoryTracker()) == []
    assert log_lines(capsys) == [
        "GPUMemoryTracker does nothing: TensorFlow has no GPU in this process."
    ]


@pytest.mark.gpu
def test_the_peak_of_a_gpu_is_measured():
    value = tf.reduce_sum(tf.ones([1024, 1024]) * tf.random_uniform([1024, 1]))
    ((_, name, megabytes),) = train(cb.GPUMemoryTracker(), train_op=value.op)
    assert name == "PeakMemory(MB)/gpu:0" and megabytes > 0.01


def test_the_memory_of_the_host_is_put_every_epoch():
    tape = train(cb.HostMemoryTracker(), max_epoch=2)
    assert [name for _, name, _ in tape] == ["HostFreeMemory (GB)"] * 2
    assert all(0.01 < gigabytes < 1e5 for _, _, gigabytes in tape)


def test_elsewhere_than_on_linux_psutil_tells_it(monkeypatch):
    monkeypatch.setattr(prof, "available_bytes", lambda: None)
    memory = types.SimpleNamespace(available=3 << 30)
    psutil = types.SimpleNamespace(virtual_memory=lambda: memory)
    monkeypatch.setitem(sys.modules, "psutil", psutil)
    assert train(cb.HostMemoryTracker()) == [(2, "HostFreeMemory (GB)", 3.0)]
