"""Tells before a queue fills whether what it and the dataflow may hold fits into the memory."""

from typing import Any, Optional, Sequence

import numpy as np

from tensorpack.utils import logger
from tensorpack.utils._words import size_text
from tensorpack.utils.memory import available_bytes

_WORTH_A_LINE = 0.1  # of the free memory


def check_room(
    capacity: int, arrays: Sequence[np.ndarray], ds: Any, available: Optional[int] = None
) -> None:
    """Checks by the first datapoint whether a queue has room in the memory.

    Without this check the process would be killed when the queue is full. What is a tenth of the
    free memory is logged; if the buffers of the dataflow might be too much, it is a warning.

    Args:
      capacity: how many datapoints the queue may hold; not positive if it has no limit.
      arrays: the first of them.
      ds: the dataflow.
      available: free bytes; asked of the system by default. If it does not know either, nothing is
        checked.
    """
    available = available_bytes() if available is None else available
    each = sum(array.nbytes for array in arrays)
    if available is None or capacity <= 0:
        return
    queue, buffers = capacity * each, waiting_bytes(ds, each)
    if queue > available:
        raise ValueError(
            f"The input queue may hold {capacity} datapoints of {size_text(each)}, "
            f"{size_text(queue)} in all, but {size_text(available)} of memory are free: "
            f"use smaller batches, or QueueInput(capacity={max(available // each // 2, 1)})."
        )
    words = (
        f"The input queue may hold {size_text(queue)}, and buffers of the dataflow "
        f"{size_text(buffers)}; {size_text(available)} of memory are free."
    )
    if queue + buffers > available:
        logger.warning(f"{words} Give a smaller buffer_bytes, or QueueInput(capacity=).")
    elif queue + buffers > available * _WORTH_A_LINE:
        logger.info(words)


def waiting_bytes(ds: Any, each: int) -> int:
    """Estimates how many bytes may wait in the buffers of a chain of flows.

    Args:
      ds: the last flow of the chain.
      each: bytes of its datapoints; those of earlier flows are taken to have no more.
    """
    total = 0
    while ds is not None:
        limits = getattr(ds, "waiting_limits", ())
        total += sum(min(count * each, nbytes) for count, nbytes in limits)
        ds = getattr(ds, "ds", None)
    return total
