"""Progress bars on standard error: often refreshed on a screen, rarely in a file."""

import os
import sys
import time
from typing import Any, Callable, Dict, Iterable, Optional

from tqdm.std import tqdm  # not what a program may have put into its place

from ._console import ForgivingStream, is_notebook, is_terminal

_TERMINAL_SECONDS = 0.5
_FILE_SECONDS = 60.0
_FORMAT = "{l_bar}{bar}|{n_fmt}/{total_fmt}[{elapsed}<{remaining},{rate_noinv_fmt}{postfix}]"


class _Bar(tqdm):
    # tqdm's monitor thread corrects a guessed `miniters`; ours is given, so no thread is needed.
    monitor_interval = 0

    @property
    def _time(self) -> Callable[[], float]:
        # tqdm uses the wall clock, which may jump.
        return time.monotonic

    @_time.setter
    def _time(self, clock: Callable[[], float]) -> None:
        pass


def get_tqdm_kwargs(**kwargs: Any) -> Dict[str, Any]:
    """Returns the default arguments of a progress bar for tqdm, updated by those given.

    A bar is refreshed every 0.5 seconds in a terminal or a notebook and every 60 in a file.
    The environment variable TENSORPACK_PROGRESS_REFRESH, read in each call, sets other seconds.
    """
    watched = is_terminal(sys.stderr) or is_notebook(sys.stderr)
    default = _TERMINAL_SECONDS if watched else _FILE_SECONDS
    seconds = float(os.environ.get("TENSORPACK_PROGRESS_REFRESH") or default)
    ours = {
        "file": ForgivingStream(sys.stderr),
        "ascii": True,
        "bar_format": _FORMAT,
        "dynamic_ncols": True,
        "smoothing": 0.5,
        "mininterval": seconds,
        "maxinterval": max(seconds, 10.0),
        "miniters": 1,
    }
    return {**ours, **kwargs}


def get_tqdm(iterable: Optional[Iterable] = None, *args: Any, **kwargs: Any) -> tqdm:
    """Returns a tqdm bar such as `  5%|#    |50/1000[00:05<01:35,9.98it/s]`.

    Without an iterable call its `update()`. It takes any of tqdm's arguments, by position only
    `desc`, `total` and `leave`.
    """
    return _Bar(iterable, *args, **get_tqdm_kwargs(**kwargs))
