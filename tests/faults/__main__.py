"""`python -m tests.faults CASE LOGDIR` runs one case of `child.py` or of `cases_*.py`."""

import sys

if __name__ == "__main__":  # not for the workers of a case: they do without TensorFlow
    from tests.faults import (  # noqa: F401
        cases_disk,
        cases_errors,
        cases_machine,
        cases_process,
        cases_values,
    )
    from tests.faults.child import main

    main(*sys.argv[1:])
