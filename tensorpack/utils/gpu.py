"""Counts and chooses GPUs without touching them, and sets environment variables for a block."""

import os
from contextlib import contextmanager, suppress
from typing import ContextManager, Iterator, Optional, Sequence, Union

from .nvml import NVMLContext, visible_devices
from .workers.processes import subproc_call

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_SMI_SECONDS = 20


@contextmanager
def change_env(name: str, val: Optional[str]) -> Iterator[None]:
    """Sets an environment variable inside the block, or unsets it if `val` is None."""
    before = os.environ.pop(name, None)
    try:
        if val is not None:
            os.environ[name] = str(val)
        yield
    finally:
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before


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
    # not installed; or there is no driver
    with suppress(ImportError, RuntimeError), NVMLContext() as nvml:
        return nvml.num_devices()
    output, code = subproc_call(["nvidia-smi", "-L"], timeout=_SMI_SECONDS)
    return sum(line.startswith(b"GPU ") for line in output.splitlines()) if code == 0 else 0


get_nr_gpu = get_num_gpu  # the spelling of 2017
