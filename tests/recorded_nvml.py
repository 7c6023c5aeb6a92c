"""Stands for the module of nvidia-ml-py, with answers as the driver of a machine gives them."""

import types


class RecordedNvml(types.ModuleType):
    """A driver with some GPUs, or none.

    Args:
      count: how many GPUs there are; None for no driver.
      busy: percents that the first GPU gives in turn, the last one from then on; those of the
        others are 10 more each. None for a GPU that cannot tell.
    """

    class NVMLError(Exception):
        pass

    def __init__(self, count, busy=(0,)):
        super().__init__("pynvml")
        self.count = count
        self.busy = None if busy is None else list(busy)
        self.open = 0

    def nvmlInit(self):
        if self.count is None:
            raise self.NVMLError("NVML Shared Library Not Found")
        self.open += 1

    def nvmlShutdown(self):
        self.open -= 1

    def nvmlDeviceGetCount(self):
        return self.count

    def nvmlDeviceGetHandleByIndex(self, index):
        if not 0 <= index < self.count:
            raise self.NVMLError("Invalid Argument")
        return index

    def nvmlDeviceGetHandleByUUID(self, uuid):
        return self.nvmlDeviceGetHandleByIndex(int(uuid[len("GPU-") :]))

    def nvmlDeviceGetName(self, handle):
        return b"NVIDIA H100"  # as old versions do

    def nvmlDeviceGetMemoryInfo(self, handle):
        return types.SimpleNamespace(total=80 << 30, used=1 << 30, free=79 << 30)

    def nvmlDeviceGetUtilizationRates(self, handle):
        if self.busy is None:
            raise self.NVMLError("Not Supported")
        percent = self.busy[0]
        if handle == self.count - 1 and len(self.busy) > 1:
            self.busy.pop(0)
        return types.SimpleNamespace(gpu=percent + 10 * handle, memory=5)
