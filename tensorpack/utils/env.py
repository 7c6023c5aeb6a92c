"""Environment variables that are set for a block."""

import os
from contextlib import contextmanager
from typing import Iterator, Optional

__all__ = ["change_env"]


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
