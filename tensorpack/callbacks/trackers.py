"""Puts what a run takes of its machine: the time and the memory of GPUs, and the host's memory."""

import os
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

import numpy as np

from tensorpack.compat import gpu_memory_peak
from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.checks import as_list, check_counts
from tensorpack.utils.gpu import get_num_gpu
from tensorpack.utils.nvml import NVMLContext, visible_devices
from tensorpack.utils.optional import require

from .base import Callback

_SAMPLE_SECONDS = 1.0  # over which the driver itself averages, at most
_MEMINFO = "/proc/meminfo"


class GPUUtilizationTracker(Callback):
    """Puts in how many percent of each epoch's time GPUs were busy, as `GPUUtil/{device}`.

    A thread asks the driver once a second, by nvidia-ml-py, from the first step of an epoch to its
    last. Other programs on a GPU count as well. Where there is no GPU, it does nothing.

    Args:
      devices: indices of GPUs in the order of `nvidia-smi`, or their UUIDs; by default those in
        CUDA_VISIBLE_DEVICES, or all. CUDA has the same order only if CUDA_DEVICE_ORDER=PCI_BUS_ID.

    Raises:
      ImportError: when it is set up, nvidia-ml-py is not installed.
    """

    puts_scalars = True
    _chief_only = False

    def __init__(self, devices: Optional[Sequence[Union[int, str]]] = None) -> None:
        self._devices = None if devices is None else as_list(self, "devices", devices)
        self._sampler: Optional[_Sampler] = None
        self._percent: List[float] = []  # of each device, in the last epoch

    def _setup_graph(self) -> None:
        if self._devices is None:
            self._devices = visible_devices() or list(range(get_num_gpu()))
        if not self._devices:
            logger.warning(f"{self} does nothing: this process sees no GPU.")
            return
        with NVMLContext() as nvml:  # what does not work is an error now
            for each in self._devices:
                nvml.device(each).utilization()

    def _before_epoch(self) -> None:
        self._percent = []
        if self._devices:
            self._sampler = _Sampler(self._devices)
            self._sampler.start()

    def _after_epoch(self) -> None:
        sampler, self._sampler = self._sampler, None
        if sampler is None:
            return
        sampler.finish()
        if sampler.error is not None:
            logger.warning(f"{self} stops: {sampler.error}")
            self._devices = []
            return
        self._percent = np.mean(sampler.samples, axis=0).tolist()

    def _trigger(self) -> None:
        for device, percent in zip(self._devices or [], self._percent):
            self.trainer.monitors.put_scalar(f"GPUUtil/{device}", percent)

    def _after_train(self) -> None:
        sampler, self._sampler = self._sampler, None
        if sampler is not None:
            sampler.finish()


class _Sampler(threading.Thread):
    """Takes the percent of each device once a second; one sample at least, at the end."""

    def __init__(self, devices: Sequence[Union[int, str]]) -> None:
        super().__init__(name="GPUUtilizationTracker", daemon=True)
        self._devices = devices
        self._finished = threading.Event()
        self.samples: List[List[int]] = []
        self.error: Optional[Exception] = None

    def run(self) -> None:
        try:
            with NVMLContext() as nvml:
                gpus = [nvml.device(each) for each in self._devices]
                while not self._finished.wait(_SAMPLE_SECONDS):
                    self.samples.append([gpu.utilization()["gpu"] for gpu in gpus])
                if not self.samples:
                    self.samples.append([gpu.utilization()["gpu"] for gpu in gpus])
        except Exception as error:  # for the owner
            self.error = error

    def finish(self) -> None:
        self._finished.set()
        self.join()


class GPUMemoryTracker(Callback):
    """Puts the most memory that TensorFlow has used on GPUs, as `PeakMemory(MB)/gpu:{device}`.

    It counts from the begin of the process, in units of 2**20 bytes. What TensorFlow holds without
    using it does not count. Where TensorFlow has no GPU, it does nothing.

    Args:
      devices: numbers of GPUs, as TensorFlow counts them.
    """

    puts_scalars = True

    def __init__(self, devices: Sequence[int] = (0,)) -> None:
        self._devices = [f"gpu:{each}" for each in as_list(self, "devices", devices)]
        for each in devices:
            check_counts(self, 0, device=each)
        self._peaks: Dict[str, Callable[[tf.Session], int]] = {}

    def _setup_graph(self) -> None:
        if tf.test.is_built_with_cuda():
            self._peaks = {each: gpu_memory_peak(f"/{each}") for each in self._devices}

    def _before_train(self) -> None:
        listed = [each.name.lower() for each in tf.get_default_session().list_devices()]
        present = [name.rpartition("/device:")[2] for name in listed if "/device:gpu:" in name]
        missing = [each for each in self._devices if each not in present]
        if not present:
            logger.warning(f"{self} does nothing: TensorFlow has no GPU in this process.")
            self._peaks = {}
        elif missing:
            raise ValueError(
                f"{self}: TensorFlow has no {', '.join(missing)}, but {', '.join(present)}."
            )

    def _trigger(self) -> None:
        for device, peak in self._peaks.items():
            megabytes = peak(tf.get_default_session()) / 2**20
            self.trainer.monitors.put_scalar(f"PeakMemory(MB)/{device}", megabytes)


PeakMemoryTracker = GPUMemoryTracker  # another name in scripts


class HostMemoryTracker(Callback):
    """Puts how much of the host's memory new programs could take, as `HostFreeMemory (GB)`.

    It is the memory that is free or can be freed without swapping, in units of 2**30 bytes. On
    systems other than Linux it needs psutil.
    """

    puts_scalars = True
    _chief_only = False

    def _setup_graph(self) -> None:
        _available()

    def _trigger(self) -> None:
        self.trainer.monitors.put_scalar("HostFreeMemory (GB)", _available() / 2**30)


def _available() -> int:
    """Returns the bytes of memory that are available."""
    if not os.path.exists(_MEMINFO):
        memory: Any = require("psutil").virtual_memory()
        return int(memory.available)
    with open(_MEMINFO, encoding="ascii") as lines:
        sizes = dict(line.split(":") for line in lines)
    return int(sizes["MemAvailable"].split()[0]) * 1024
