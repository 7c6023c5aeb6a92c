"""Counts and chooses GPUs without touching them, and sets environment variables for a block."""

import os
from contextlib import contextmanager
from typing import ContextManager, Iterator, Optional, Sequence, Union

from .nvml import NVMLContext, visible_devices
from .workers.processes import subproc_call

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_SMI_SECONDS = 20


@contextmanager
def change_env(name: str, val: Optional[str]) -> Iterator[None]:
    """Sets an environment variable inside the block, or unsets it if `val` is None, and restores
    it, also after an exception.
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


def change_gpu(val: Union[None, int, str, Sequence[int]]) -> ContextManager[None]:
    """Returns a context in which CUDA_VISIBLE_DEVICES names these GPUs.

    It has an effect only before the process first initializes CUDA.

    Args:
      val: a number, several numbers, or text such as "0,2"; -1 means none, and None all that the
        process may use anyway.
    """
    if val is None:
        return change_env(_VARIABLE, os.environ.get(_VARIABLE))
    text = str(val) if isinstance(val, (int, str)) else ",".join(map(str, val))
    return change_env(_VARIABLE, "" if text == "-1" else text)


def get_num_gpu() -> int:
    """Returns the number of GPUs that this process may use.

    Counts the devices in CUDA_VISIBLE_DEVICES if that is set; otherwise the GPUs of the machine, by
    nvidia-ml-py or `nvidia-smi`. Returns 0 without either.
    """
    visible = visible_devices()
    if visible is not None:
        return len(visible)
    count = _count_by_nvml()
    return _count_by_smi() if count is None else count


get_nr_gpu = get_num_gpu  # the spelling of 2017


def _count_by_nvml() -> Optional[int]:
    try:
        with NVMLContext() as nvml:
            return nvml.num_devices()
    except (ImportError, RuntimeError):  # not installed; or there is no driver
        return None


def _count_by_smi() -> int:
    output, code = subproc_call(["nvidia-smi", "-L"], timeout=_SMI_SECONDS)
    lines = output.splitlines() if code == 0 else []
    return sum(line.startswith(b"GPU ") for line in lines)
