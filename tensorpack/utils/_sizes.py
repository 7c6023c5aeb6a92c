"""Writes numbers of bytes for people."""

from typing import Optional

__all__ = ["size_text"]


def size_text(nbytes: Optional[float], unknown: str = "?") -> str:
    """Returns a number of bytes such as `12.3 MB` (of a million each); `unknown` for None."""
    if nbytes is None:
        return unknown
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if nbytes >= unit:
            return f"{nbytes / unit:.1f} {name}"
    return f"{nbytes:.0f} B"
