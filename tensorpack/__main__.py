"""`python -m tensorpack` is the program `tensorpack`, see `tensorpack.command`."""

import signal
import sys


def main() -> int:
    """Runs the program. Ctrl-C ends it without a traceback, also while it is loaded."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from tensorpack.command.program import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
