"""R9: how long `import tensorpack` takes beyond the bare interpreter."""

import subprocess
import sys
import time

from _contest import Contest, difference
from _programs import CHECKOUT

IMPORT = "import tensorpack"
LOADED = f"{IMPORT}, sys; sys.exit('tensorflow' in sys.modules)"


def imported():
    """`import tensorpack` beyond the bare interpreter; fails if it loads TensorFlow."""
    milliseconds_of(LOADED)  # also writes the bytecode
    yield Contest(
        "import tensorpack, beyond the bare interpreter",
        {"import": lambda: milliseconds_of(IMPORT), "interpreter": lambda: milliseconds_of("")},
        unit="ms",
        judge=difference,
        target="<= 50",
    )


def milliseconds_of(code):
    """How long an interpreter takes for a program."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, cwd=str(CHECKOUT))
    return 1000 * (time.perf_counter() - start)
