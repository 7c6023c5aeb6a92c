"""How much memory this process may still take, and whether a replay memory fits into it."""

import os
from typing import Dict, Iterator, List, Optional, Tuple

__all__ = ["available_bytes", "check_fits", "largest_that_fits"]

RESERVED_BYTES = 2 * 2**30  # for TensorFlow, 50 batches in the queue, and everything else


def available_bytes(root: str = "/") -> Optional[int]:
    """Returns how many bytes can be taken without swapping or being killed; None if unknown.

    That is the least of what the machine has left and what each control group above this process
    (as containers and batch systems use) has left.

    Args:
      root: where `/proc` and `/sys` are.
    """
    found = [_left_on_machine(root), *_left_in_groups(root)]
    known = [each for each in found if each is not None]
    return max(min(known), 0) if known else None


def check_fits(memory_size: int, bytes_each: int, available: Optional[int]) -> None:
    """Raises if a replay memory would not fit.

    It would not at once: its pages are taken one by one, so the process would be killed after
    hours of training.

    Args:
      memory_size: number of transitions.
      bytes_each: what one of them takes.
      available: free bytes, or None if unknown.

    Raises:
      ValueError: it would not fit; says what would.
    """
    if available is None or memory_size * bytes_each <= available - RESERVED_BYTES:
        return
    largest = largest_that_fits(bytes_each, available)
    raise ValueError(
        f"a replay memory of {memory_size} transitions takes {memory_size * bytes_each / 1e9:.1f} "
        f"GB, but {available / 1e9:.1f} GB are free, of which {RESERVED_BYTES / 1e9:.1f} GB are "
        "left to everything else: "
        + (f"use --memory-size {largest} or less" if largest else "free some memory first")
    )


def largest_that_fits(bytes_each: int, available: int) -> int:
    """Returns the number of transitions that fit, in whole thousands if there are any."""
    exactly = max(available - RESERVED_BYTES, 0) // bytes_each
    return exactly // 1000 * 1000 or exactly


def _left_on_machine(root: str) -> Optional[int]:
    for line in _read(os.path.join(root, "proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _left_in_groups(root: str) -> Iterator[Optional[int]]:
    for mount, group, names in _memory_groups(root):
        # A group is limited by all those above it. In a container the path may be that of the
        # host, of which only the top is to be seen.
        parts = [part for part in group.split("/") if part]
        for depth in range(len(parts), -1, -1):
            yield _left_in_group(os.path.join(mount, *parts[:depth]), names)


_Names = Tuple[str, str, str]  # files: the limit, what is used, and the key of reclaimable pages

_V1: _Names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2: _Names = ("memory.max", "memory.current", "inactive_file")


def _memory_groups(root: str) -> List[Tuple[str, str, _Names]]:
    """Returns mount point, path and file names of each control group for memory."""
    groups = []
    for line in _read(os.path.join(root, "proc/self/cgroup")).splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            groups.append((os.path.join(root, "sys/fs/cgroup"), path, _V2))
        elif "memory" in controllers.split(","):
            groups.append((os.path.join(root, "sys/fs/cgroup/memory"), path, _V1))
    return groups


def _left_in_group(directory: str, names: _Names) -> Optional[int]:
    limit, used = (_read(os.path.join(directory, name)).strip() for name in names[:2])
    if not limit.isdigit() or not used.isdigit():  # "max", or no such group
        return None
    cache = int(_statistics(os.path.join(directory, "memory.stat")).get(names[2], 0))
    return int(limit) - int(used) + cache


def _statistics(path: str) -> Dict[str, str]:
    lines = (line.split() for line in _read(path).splitlines())
    return {parts[0]: parts[1] for parts in lines if len(parts) == 2}


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
