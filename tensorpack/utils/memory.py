"""How much memory is free: what this process can take before it is killed."""

import os
import re
from typing import Iterator, Optional


def available_bytes(root: str = "/") -> Optional[int]:
    """Returns how many bytes this process can take without swapping or being killed.

    That is the minimum of what the machine has left and what each control group of this process
    (containers and batch systems use them) has left; None if unknown. `/proc` and `/sys` are below
    `root`.
    """
    meminfo = _read(os.path.join(root, "proc/meminfo"))
    left = [1024 * int(kb) for kb in re.findall(r"^MemAvailable: +(\d+)", meminfo, re.M)]
    left += _left_in_groups(root)
    return max(min(left), 0) if left else None


# Files of a control group: its limit, what is used, and the key of reclaimable pages.
_V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_V2 = ("memory.max", "memory.current", "inactive_file")


def _left_in_groups(root: str) -> Iterator[int]:
    """Yields what each control group of this process for memory has left."""
    for line in _read(os.path.join(root, "proc/self/cgroup")).splitlines():
        number, controllers, path = line.split(":", 2)
        if number != "0" and "memory" not in controllers.split(","):
            continue
        mount = os.path.join(root, "sys/fs/cgroup", "" if number == "0" else "memory")
        limit_file, usage_file, cache_key = _V2 if number == "0" else _V1
        # A group is limited by all those above it. In a container the path may be that of the
        # host, of which only the top is to be seen.
        parts = [part for part in path.split("/") if part]
        for depth in range(len(parts), -1, -1):
            group = os.path.join(mount, *parts[:depth])
            limit, used = (_read(os.path.join(group, f)).strip() for f in (limit_file, usage_file))
            if limit.isdigit() and used.isdigit():  # else "max", or no such group
                stat = _read(os.path.join(group, "memory.stat"))
                cache = re.search(rf"^{cache_key} (\d+)$", stat, re.M)
                yield int(limit) - int(used) + (int(cache.group(1)) if cache else 0)


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
