"""`python -m tensorpack` is the program `tensorpack`, see `tensorpack.command`."""

import sys

from tensorpack.command.program import main

if __name__ == "__main__":
    sys.exit(main())
