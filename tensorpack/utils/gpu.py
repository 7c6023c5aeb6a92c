"""Counts and chooses GPUs without touching them, and sets environment variables for a block."""

import itertools
import os
from contextlib import contextmanager
from typing import ContextManager, Iterator, Optional, Sequence, Union

from .optional import require
from .processes import subproc_call

__all__ = ["change_env", "change_gpu", "get_nr_gpu", "get_num_gpu"]

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_SMI_SECONDS = 20


@contextmanager
def change_env(name: str, val: Optional[str]) -> Iterator[None]:
    """Sets an environment variable inside the block and restores it, also after an exception.

    Args:
      name: the variable.
      val: its value, or None to unset it.
    """
    before = os.environ.get(name)
    _set(name, None if val is None else str(val))
    try:
        yield
    finally:
        _set(name, before)


def _set(name: str, val: Optional[str]) -> None:
    if val is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = val


def change_gpu(val: Union[int, str, Sequence[int]]) -> ContextManager[None]:
    """Returns a context in which CUDA_VISIBLE_DEVICES names these GPUs.

    It has an effect only before the process first initializes CUDA.

    Args:
      val: a number, several numbers, or text such as "0,2"; -1 means none.
    """
    text = str(val) if isinstance(val, (int, str)) else ",".join(map(str, val))
    return change_env(_VARIABLE, "" if text == "-1" else text)


def get_num_gpu() -> int:
    """Returns the number of GPUs that this process may use.

    Counts the devices in CUDA_VISIBLE_DEVICES if that is set; otherwise the GPUs of the machine, by
    nvidia-ml-py or `nvidia-smi`. Returns 0 without either.
    """
    visible = os.environ.get(_VARIABLE)
    if visible is not None:
        return _count_visible(visible)
    count = _count_by_nvml()
    return _count_by_smi() if count is None else count


get_nr_gpu = get_num_gpu  # the spelling of 2017


def _count_visible(visible: str) -> int:
    # CUDA reads the list up to the first entry that is not a device.
    entries = map(str.strip, visible.split(","))
    return len(list(itertools.takewhile(lambda entry: entry and entry[0] != "-", entries)))


def _count_by_nvml() -> Optional[int]:
    try:
        pynvml = require("pynvml")
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:  # there is no driver
        return None
    try:
        return int(pynvml.nvmlDeviceGetCount())
    finally:
        pynvml.nvmlShutdown()


def _count_by_smi() -> int:
    output, code = subproc_call(["nvidia-smi", "-L"], timeout=_SMI_SECONDS)
    lines = output.splitlines() if code == 0 else []
    return sum(line.startswith(b"GPU ") for line in lines)
