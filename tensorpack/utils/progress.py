"""Progress bars on standard error: often refreshed on a screen, rarely in a file."""

import os
import sys
import time
from typing import Any, Dict, Iterable, Optional

from tqdm.std import tqdm  # not what a program may have put into its place

from ._console import ForgivingStream, is_notebook, is_terminal

_TERMINAL_SECONDS = 0.5
_FILE_SECONDS = 60.0
_FORMAT = "{l_bar}{bar}|{n_fmt}/{total_fmt}[{elapsed}<{remaining},{rate_noinv_fmt}{postfix}]"


class _Bar(tqdm):
    monitor_interval = 0  # its thread corrects a guessed `miniters`; ours is set
    # tqdm uses the wall clock, which may jump, and sets this attribute to it
    _time = property(lambda self: time.monotonic, lambda self, clock: None)


def get_tqdm_kwargs(**kwargs: Any) -> Dict[str, Any]:
    """Returns the default arguments of a progress bar for tqdm, updated by `kwargs`.

    A bar is refreshed every 0.5 seconds in a terminal or a notebook and every 60 in a file.
    The environment variable TENSORPACK_PROGRESS_REFRESH, read in each call, sets other seconds.
    """
    watched = is_terminal(sys.stderr) or is_notebook(sys.stderr)
    default = _TERMINAL_SECONDS if watched else _FILE_SECONDS
    seconds = float(os.environ.get("TENSORPACK_PROGRESS_REFRESH") or default)
    defaults = {
        "file": ForgivingStream(sys.stderr),
        "ascii": True,
        "bar_format": _FORMAT,
        "dynamic_ncols": True,
        "smoothing": 0.5,
        "mininterval": seconds,
        "maxinterval": max(seconds, 10.0),
        "miniters": 1,
    }
    return {**defaults, **kwargs}


def get_tqdm(iterable: Optional[Iterable] = None, *args: Any, **kwargs: Any) -> tqdm:
    """Returns a tqdm bar such as `  5%|#    |50/1000[00:05<01:35,9.98it/s]`; without an iterable
    call its `update()`. By position it takes `desc`, `total` and `leave`.
    """
    return _Bar(iterable, *args, **get_tqdm_kwargs(**kwargs))
