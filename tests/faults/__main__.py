"""`python -m tests.faults CASE LOGDIR` runs one case of `child.py`."""

import sys

from tests.faults.child import main

if __name__ == "__main__":
    main(*sys.argv[1:])
