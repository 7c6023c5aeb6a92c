"""What the driver of NVIDIA knows about the GPUs of this machine, by nvidia-ml-py."""

import os
from itertools import takewhile
from typing import Any, Callable, Dict, List, Optional, Union

from .optional import require


class NVMLContext:
    """Opens NVML, the library of the driver, for a `with` block; TensorFlow is not involved.

    Entering it, and all that asks the driver, raises RuntimeError with NVML's own message where
    that fails: there is no driver, no such GPU, or a part of a GPU (MIG) cannot tell.
    """

    def __init__(self) -> None:
        self._nvml: Any = require("pynvml")

    def __enter__(self) -> "NVMLContext":
        self._ask("nvmlInit")
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self._nvml.nvmlShutdown()

    def num_devices(self) -> int:
        """Returns the number of GPUs of the machine, whatever CUDA_VISIBLE_DEVICES says."""
        return int(self._ask("nvmlDeviceGetCount"))

    def devices(self) -> List["NvidiaDevice"]:
        """Returns all GPUs of the machine."""
        return [self.device(index) for index in range(self.num_devices())]

    def device(self, idx: Union[int, str]) -> "NvidiaDevice":
        """Returns a GPU, by its index in the order of `nvidia-smi` or by its UUID."""
        is_index = isinstance(idx, int) or idx.isdigit()
        kind, key = ("Index", int(idx)) if is_index else ("UUID", idx)
        handle = self._ask(f"nvmlDeviceGetHandleBy{kind}", key)
        return NvidiaDevice(lambda function: self._ask(function, handle))

    def _ask(self, function: str, *args: Any) -> Any:
        try:
            answer = getattr(self._nvml, function)(*args)
        except self._nvml.NVMLError as error:
            about = f"{function}({', '.join(map(repr, args))})"
            raise RuntimeError(f"{about} of NVML: {error}. Does nvidia-smi work?") from error
        return answer.decode() if isinstance(answer, bytes) else answer  # before version 11.500


class NvidiaDevice:
    """One GPU; made by `NVMLContext`, whose block must be open."""

    def __init__(self, ask: Callable[[str], Any]) -> None:
        self._ask = ask

    def name(self) -> str:
        """Returns the name of the product."""
        return self._ask("nvmlDeviceGetName")

    def memory(self) -> Dict[str, int]:
        """Returns the bytes of its memory as "total", "used" and "free"."""
        info = self._ask("nvmlDeviceGetMemoryInfo")
        return {"total": int(info.total), "used": int(info.used), "free": int(info.free)}

    def utilization(self) -> Dict[str, int]:
        """Returns "gpu" and "memory": in how many percent of the time, over a period of up to a
        second that the driver chooses, an op ran, and the memory was read or written.
        """
        rates = self._ask("nvmlDeviceGetUtilizationRates")
        return {"gpu": int(rates.gpu), "memory": int(rates.memory)}


def visible_devices() -> Optional[List[str]]:
    """Returns the indices or UUIDs in CUDA_VISIBLE_DEVICES; None if it is not set."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return None
    # CUDA reads the list up to an entry that is empty or negative.
    entries = map(str.strip, visible.split(","))
    return list(takewhile(lambda entry: entry and entry[0] != "-", entries))
