"""`tensorpack.callbacks.stats` of older versions; see `tensorpack.callbacks`."""

from tensorpack.callbacks import (
    InjectShell,
    SendStat,
)

__all__ = [
    "InjectShell",
    "SendStat",
]
