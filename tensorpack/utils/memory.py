"""How much memory is free: what this process can take before it is killed."""

import os
import re
from typing import Iterator, Optional, Tuple


def available_bytes(root: str = "/") -> Optional[int]:
    """Returns how many bytes this process can take without swapping or being killed.

    That is the minimum of what the machine has left and what each control group of this process
    (containers and batch systems use them) has left; None if unknown. `/proc` and `/sys` are below
    `root`.
    """
    meminfo = _read(os.path.join(root, "proc/meminfo"))
    left = [1024 * int(kb) for kb in re.findall(r"^MemAvailable: +(\d+)", meminfo, re.M)]
    left += [nbytes for nbytes in _left_in_groups(root) if nbytes is not None]
    return max(min(left), 0) if left else None


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


def _memory_groups(root: str) -> Iterator[Tuple[str, str, _Names]]:
    """Yields mount point, path and file names of each control group for memory."""
    for line in _read(os.path.join(root, "proc/self/cgroup")).splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            yield os.path.join(root, "sys/fs/cgroup"), path, _V2
        elif "memory" in controllers.split(","):
            yield os.path.join(root, "sys/fs/cgroup/memory"), path, _V1


def _left_in_group(directory: str, names: _Names) -> Optional[int]:
    limit, used = (_read(os.path.join(directory, name)).strip() for name in names[:2])
    if not limit.isdigit() or not used.isdigit():  # "max", or no such group
        return None
    cache = re.search(rf"^{names[2]} (\d+)$", _read(os.path.join(directory, "memory.stat")), re.M)
    return int(limit) - int(used) + (int(cache.group(1)) if cache else 0)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
