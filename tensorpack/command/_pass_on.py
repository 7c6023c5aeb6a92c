"""Becomes another program of this package, which gets the whole command line."""

import os
import sys
from typing import Sequence


def become(module: str, rest: Sequence[str]) -> int:
    """Replaces this process by `python -m {module} {rest}`; does not return.

    So signals, standard streams and the exit code are those of that program.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, "-m", module, *rest])
    return 1  # of a test that replaces execv
