"""Errors of the command line, and how any error is told in a line."""

import os
import traceback
from pathlib import Path

from tensorpack.utils.worker_errors import WorkerTraceback

from .._files import DamagedFile

__all__ = ["CommandError", "told"]

_PACKAGE = str(Path(os.path.abspath(__file__)).parents[2]) + os.sep  # tensorpack/


class CommandError(Exception):
    """What a command was given cannot be used; the message says why, and what can."""


def told(error: BaseException) -> str:
    """Returns what to tell the user of an error instead of a traceback.

    What this package raises, and errors about files, are sentences already. All others come most
    likely from the user's own code, so their type and place are told, too.
    """
    text = str(error)
    if isinstance(error, KeyError) and len(error.args) == 1:
        text = str(error.args[0])  # its own text would be in quotes
    if text and _is_sentence(error):
        return text
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return f"{what}{_where(error)}. --traceback shows more."


def _is_sentence(error: BaseException) -> bool:
    if isinstance(error, (CommandError, DamagedFile, OSError)) or type(error) is ImportError:
        return True
    frames = traceback.extract_tb(error.__traceback__)
    return (
        isinstance(error, (KeyError, RuntimeError, TypeError, ValueError))
        and not isinstance(error.__cause__, WorkerTraceback)
        and bool(frames)
        and frames[-1].filename.startswith(_PACKAGE)
    )


def _where(error: BaseException) -> str:
    if isinstance(error.__cause__, WorkerTraceback):
        return " (in a worker process)"
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or isinstance(error, SyntaxError):  # which names the place itself
        return ""
    return f" ({frames[-1].filename}, line {frames[-1].lineno})"
