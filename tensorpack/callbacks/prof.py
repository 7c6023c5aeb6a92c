"""What a run takes of its machine: traces of the ops, throughput, GPUs and memory."""

import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from tensorpack.compat import gpu_memory_peak, step_trace
from tensorpack.compat import tfv1 as tf
from tensorpack.utils import logger
from tensorpack.utils.checks import as_list, as_positive
from tensorpack.utils.gpu import get_num_gpu
from tensorpack.utils.memory import available_bytes
from tensorpack.utils.nvml import NVMLContext, visible_devices
from tensorpack.utils.optional import require

from ._disk import LogFiles
from .base import Callback

_SAMPLE_SECONDS = 1.0  # over which the driver itself averages, at most


class GraphProfiler(Callback):
    """Traces the steps in full, each into files of its own in the log directory, which must be set.

    A traced step takes several times as long as another one, and its files may have megabytes, so
    let it trace few of them::

        PeriodicCallback(GraphProfiler(), every_k_steps=1000)
        EnableCallbackIf(GraphProfiler(), lambda self: self.global_step in (100, 101))

    Where a step has several runs of the session, the last one stays.

    Args:
      dump_metadata: whether to write the `tf.RunMetadata` as `runmetadata-{global_step}.pb`.
      dump_tracing: whether to write `chrome-trace-{global_step}.json`, to be opened in
        https://ui.perfetto.dev or chrome://tracing.
      dump_event: whether to put it to the monitors as an event with the tag `trace-{global_step}`.
    """

    def __init__(
        self, dump_metadata: bool = False, dump_tracing: bool = True, dump_event: bool = False
    ) -> None:
        if dump_metadata or dump_tracing:
            self._files = LogFiles(self)
        self._dump_metadata, self._dump_tracing = dump_metadata, dump_tracing
        self._dump_event = dump_event
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        self._request = tf.train.SessionRunArgs(fetches=[], options=options)

    def _before_run(self, ctx: tf.train.SessionRunContext) -> tf.train.SessionRunArgs:
        return self._request

    def _after_run(self, ctx: tf.train.SessionRunContext, run_values: Any) -> None:
        metadata, step = run_values.run_metadata, self.global_step
        if self._dump_metadata:
            self._files.write(f"runmetadata-{step}.pb", metadata.SerializeToString())
        if self._dump_tracing:
            trace = step_trace(metadata.step_stats).encode()
            self._files.write(f"chrome-trace-{step}.json", trace)
        if self._dump_event:
            traced = {"tag": f"trace-{step}", "run_metadata": metadata.SerializeToString()}
            self.trainer.monitors.put_event(tf.Event(tagged_run_metadata=traced))


class ThroughputTracker(Callback):
    """Puts the throughput of each epoch, without the time of what callbacks do at its end.

    The scalar is `Throughput (samples/sec)` for so many `samples_per_step`, over all towers, and
    otherwise `Throughput (steps/sec)`. Of an epoch that a resumed run continues, only the rest
    counts. There is none for an epoch whose begin or end it has not seen, because a proxy such as
    `PeriodicCallback` had switched it off.
    """

    _begin: Any = None
    _end: Any = None  # None within an epoch

    def __init__(
        self, samples_per_step: Optional[float] = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if samples_per_step is not None:
            samples_per_step = as_positive(self, "samples_per_step", samples_per_step)
        self._samples_per_step = samples_per_step
        self._clock = clock

    def _reading(self) -> Tuple[int, int, float]:
        # `global_step` already counts the running step, which may never finish
        return self.epoch_num, self.trainer.steps_taken, self._clock()

    def _before_epoch(self) -> None:
        self._begin, self._end = self._reading(), None

    def _after_epoch(self) -> None:
        self._end = self._reading()

    def _trigger(self) -> None:
        first = self._begin or self._reading()
        last = self._end or self._reading()
        epochs, steps, seconds = (b - a for a, b in zip(first, last))
        if first[0] == self.epoch_num and epochs == 0 and steps > 0 and seconds > 0:
            unit = "steps" if self._samples_per_step is None else "samples"
            rate = steps * (self._samples_per_step or 1) / seconds
            self.trainer.monitors.put_scalar(f"Throughput ({unit}/sec)", rate)


class GPUUtilizationTracker(Callback):
    """Puts in how many percent of each epoch's time GPUs were busy, as `GPUUtil/{device}`.

    A thread asks the driver once a second, by nvidia-ml-py, which must be installed, from the first
    step of an epoch to its last. Other programs on a GPU count as well. Where there is no GPU, it
    does nothing.

    Args:
      devices: indices of GPUs in the order of `nvidia-smi`, or their UUIDs; by default those in
        CUDA_VISIBLE_DEVICES, or all. CUDA has the same order only if CUDA_DEVICE_ORDER=PCI_BUS_ID.
    """

    _chief_only = False
    _thread: Any = None

    def __init__(self, devices: Optional[Sequence[Union[int, str]]] = None) -> None:
        self._devices = None if devices is None else as_list(self, "devices", devices)
        self._samples: List[List[int]] = []  # percents of each device, in the last epoch
        self._over = threading.Event()

    def _setup_graph(self) -> None:
        if self._devices is None:
            self._devices = visible_devices() or list(range(get_num_gpu()))
        if self._devices:
            with NVMLContext() as nvml:  # what does not work is an error now
                self._read(nvml)
        else:
            logger.warning(f"{self} does nothing: this process sees no GPU.")

    def _read(self, nvml: NVMLContext) -> List[int]:
        return [nvml.device(device).utilization()["gpu"] for device in self._devices or []]

    def _before_epoch(self) -> None:
        self._after_epoch()  # a proxy may leave out the end of an epoch
        self._samples = []
        if self._devices:
            self._over.clear()
            self._thread = threading.Thread(target=self._sample, name=str(self), daemon=True)
            self._thread.start()

    def _sample(self) -> None:
        """Takes the percent of each device once a second; one sample at least, at the end."""
        try:
            with NVMLContext() as nvml:
                while not self._over.wait(_SAMPLE_SECONDS) or not self._samples:
                    self._samples.append(self._read(nvml))
        except RuntimeError as error:  # the training continues without it
            logger.warning(f"{self} stops: {error}")
            self._devices, self._samples = [], []

    def _after_epoch(self) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _trigger(self) -> None:
        if self._samples:
            for device, percent in zip(self._devices or [], np.mean(self._samples, axis=0)):
                self.trainer.monitors.put_scalar(f"GPUUtil/{device}", percent)

    def _after_train(self) -> None:
        self._after_epoch()


class GPUMemoryTracker(Callback):
    """Puts the most memory that TensorFlow has used on GPUs since the begin of the process, as
    `PeakMemory(MB)/gpu:{device}` in units of 2**20 bytes, for the numbers that TensorFlow gives its
    devices. What it holds without using it does not count. Without a GPU, it does nothing.
    """

    def __init__(self, devices: Sequence[int] = (0,)) -> None:
        self._devices = [f"gpu:{device}" for device in as_list(self, "devices", devices)]
        self._peaks: Dict[str, Callable[[tf.Session], int]] = {}

    def _setup_graph(self) -> None:
        if tf.test.is_built_with_cuda():
            self._peaks = {device: gpu_memory_peak(f"/{device}") for device in self._devices}

    def _before_train(self) -> None:
        sess = self.trainer.sess
        if not any(device.device_type == "GPU" for device in sess.list_devices()):
            logger.warning(f"{self} does nothing: TensorFlow has no GPU in this process.")
            self._peaks = {}
        for peak in self._peaks.values():
            peak(sess)  # of a GPU that TensorFlow does not have is an error now

    def _trigger(self) -> None:
        for device, peak in self._peaks.items():
            megabytes = peak(self.trainer.sess) / 2**20
            self.trainer.monitors.put_scalar(f"PeakMemory(MB)/{device}", megabytes)


PeakMemoryTracker = GPUMemoryTracker  # another name in scripts


class HostMemoryTracker(Callback):
    """Puts how much more of the host's memory a program could take, as `HostFreeMemory (GB)`.

    It is the memory that is free or can be freed without swapping, within the limits of a
    container, in units of 2**30 bytes. On systems other than Linux it needs psutil.
    """

    _chief_only = False

    def _setup_graph(self) -> None:
        if available_bytes() is None:
            require("psutil")

    def _trigger(self) -> None:
        free = available_bytes()
        if free is None:
            free = require("psutil").virtual_memory().available
        self.trainer.monitors.put_scalar("HostFreeMemory (GB)", free / 2**30)
