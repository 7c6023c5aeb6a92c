"""What `tensorpack.callbacks.stats` had in older versions."""

from typing import Any

from tensorpack.callbacks import Callback, DumpParamAsImage, DumpTensor, InjectShell, SendStat

__all__ = ["DumpParamAsImage", "DumpTensor", "InjectShell", "SendStat", "StatPrinter"]


class StatPrinter(Callback):
    """Does nothing, as in 0.1.9 and 0.2: the monitor `ScalarPrinter` logs the scalars."""

    def __init__(self, print_tag: Any = None) -> None:
        pass
