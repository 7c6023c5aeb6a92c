"""`tensorpack.callbacks.stats` of older versions; see `tensorpack.callbacks`."""

from tensorpack.callbacks import (
    DumpParamAsImage,
    InjectShell,
    SendStat,
)

__all__ = [
    "DumpParamAsImage",
    "InjectShell",
    "SendStat",
]
