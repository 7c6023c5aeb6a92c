"""`python -m tests.faults CASE LOGDIR` runs one case of `child.py` or of `cases_*.py`."""

import sys

from . import cases_disk, cases_errors, cases_machine, cases_process, cases_values  # noqa: F401
from .child import main

if __name__ == "__main__":
    main(*sys.argv[1:])
