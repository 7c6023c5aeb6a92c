"""All cases of the fault matrix, but those of the DQN example."""

import sys

__all__ = ["main"]


def main(*args):
    """Runs a case; the log directory is set first, as a script does."""
    from . import (  # noqa: F401
        cases_disk,
        cases_errors,
        cases_machine,
        cases_paths,
        cases_process,
        cases_signals,
        cases_values,
        cases_workers,
    )
    from .training import main as run

    run(*args)


if __name__ == "__main__":  # not for the workers of a case: they do without TensorFlow
    main(*sys.argv[1:])
