"""Writes numbers of bytes for people."""

from typing import Optional


def size_text(nbytes: Optional[float], unknown: str = "?") -> str:
    """Returns a number of bytes such as `12.3 MB` (of a million each); `unknown` for None."""
    if nbytes is None:
        return unknown
    for name, digits in (("B", 0), ("kB", 1), ("MB", 1), ("GB", 1)):
        text = f"{nbytes:.{digits}f}"
        if float(text) < 1000:
            return f"{text} {name}"
        nbytes /= 1000
    return f"{nbytes:.1f} TB"
