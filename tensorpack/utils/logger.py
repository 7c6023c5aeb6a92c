"""The library's logger, and the directory that a run writes its files to.

Lines look like `[0724 10:43:13 @DQN.py:156] text`, with `WRN` or `ERR` before the text of warnings
and errors. They go to standard output, in colour where that is a terminal, and without colour to
`log.log` in the log directory once there is one. A full disk or a closed pipe never ends a run: the
sink that failed complains once on standard error. What is of use now and then (`detail`), such as
the shapes of layers, goes to `log.log` alone, unless TENSORPACK_VERBOSE=1.

The functions that log are methods of the logger "tensorpack" of `logging`.
"""

import itertools
import logging
import os
import shutil
import sys
from contextlib import suppress
from functools import partial
from typing import Any, List, Optional, Tuple

from ._console import ConsoleHandler, LogFileHandler, is_terminal, open_standard_descriptors
from ._directory_lock import DirectoryInUse, DirectoryLock, absolute_directory
from ._words import without_secrets
from .atomic import move_to_backup, remove_temporaries
from .cluster import Cluster

LOG_DIR: Optional[str]  # the log directory as `get_logger_dir()` returns it, by `__getattr__`

_LOG = "log.log"
_ACTIONS = {"keep": "k", "backup": "b", "delete": "d", "new": "n", "quit": "q"}


def is_verbose() -> bool:
    """Returns whether the terminal shows details, as the variable TENSORPACK_VERBOSE says."""
    return os.environ.get("TENSORPACK_VERBOSE", "") not in ("", "0")


_logger = logging.getLogger("tensorpack")
_logger.propagate = False
_logger.setLevel(logging.INFO)
# The console, also where this module is loaded a second time; before it, which may block, the file.
_logger.handlers = [ConsoleHandler()]
_logger.handlers[0].addFilter(lambda record: not hasattr(record, "detail") or is_verbose())
debug, info, error = _logger.debug, _logger.info, _logger.error
exception, critical = _logger.exception, _logger.critical
warn = warning = _logger.warning
detail = partial(info, extra={"detail": True})
setLevel, addFilter = _logger.setLevel, _logger.addFilter


def disable_logger() -> None:
    """Logs nothing from here on, also no errors, on the terminal and to the file."""
    _logger.disabled = True


def get_logger_dir() -> Optional[str]:
    """Returns the absolute path of the log directory of this process, or None if none was set."""
    return next((handler.directory for handler in _log_files()), None)


def _log_files() -> List[LogFileHandler]:
    return [handler for handler in _logger.handlers if isinstance(handler, LogFileHandler)]


def __getattr__(name: str) -> Any:
    if name == "LOG_DIR":
        return get_logger_dir()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def auto_set_dir(
    action: Optional[str] = None, name: Optional[str] = None, overwrite: bool = True
) -> None:
    """Sets the log directory to `train_log/{script}` or `train_log/{script}:{name}`, see
    `set_logger_dir`; not where one is set already and `overwrite` is False, as in 2016.
    """
    if get_logger_dir() and not overwrite:
        return
    script = getattr(sys.modules["__main__"], "__file__", None)
    if script is None:
        raise RuntimeError("There is no script to name a directory after: use set_logger_dir().")
    base = os.path.splitext(os.path.basename(script))[0]
    set_logger_dir(os.path.join("train_log", f"{base}:{name}" if name else base), action)


def set_logger_dir(dirname: str, action: Optional[str] = None) -> Optional[str]:
    """Sets the log directory, makes it, and logs to a new `log.log` in it (without colour).

    A `log.log` of an earlier run is renamed to `log.log.MMDD-HHMMSS`. If the directory has files
    in it (names with a leading dot do not count) and no action is given, the user is asked at the
    terminal; without a terminal, or with the action "new", the first free one of `{dirname}-1`,
    `{dirname}-2`, ... is taken. The present directory is kept.

    Of several processes that were started together, see `Cluster`, only worker 0 takes the
    directory itself; others have `{dirname}-worker1`, `{dirname}-1-worker1`, `{dirname}-ps0`, ...

    Args:
      action: what to do with a directory that has files in it: "k" or "keep", "b" or "backup"
        (rename it), "d" or "delete", "n" or "new", "q" or "quit" (SystemExit with code 1).

    Returns:
      the letter of the action; None if the directory was new, empty, or in use by this process.

    Raises:
      DirectoryInUse: another run writes to it; an OSError that names the process.
    """
    letter = None if action is None else _letter_of(action)
    if action is not None and letter is None:
        raise ValueError(f"Unknown action {action!r}: use one of {', '.join(_ACTIONS)}.")
    open_standard_descriptors()
    dirname = dir_of_process(dirname)
    current = get_logger_dir()
    if current and os.path.realpath(current) == os.path.realpath(dirname):
        if letter is None:
            return None
        close_logger_dir()  # and let go of its lock
    done, messages = None, []
    if _visible_names(dirname):
        done = letter or _ask_action(dirname)
    if done == "q":
        info(f"Quit; {dirname} was left as it is.")
        raise SystemExit(1)
    if done == "n":
        lock, dirname = _lock_new_directory(dirname)
    else:
        if done in ("b", "d"):
            with DirectoryLock(dirname):  # nothing is done to the files of a run that is alive
                messages.append(_clear_directory(dirname, done))
        os.makedirs(dirname, exist_ok=True)
        lock = DirectoryLock(dirname)
    path = os.path.join(dirname, _LOG)
    if os.path.lexists(path):
        messages.append(f"Existing log file '{path}' backuped to '{move_to_backup(path)}'")
    remove_temporaries(dirname, shared=False)
    file = LogFileHandler(dirname, _LOG, lock)
    close_logger_dir()
    _logger.handlers.insert(0, file)
    for line in [f"Argv: {' '.join(without_secrets(sys.argv))}", *messages]:
        info("%s", line)
    return done


def dir_of_process(dirname: str) -> str:
    """Returns the log directory, absolute, of this process of several that start with one."""
    dirname, end = absolute_directory(dirname), _end_of_names()
    return dirname if dirname.endswith(end) else dirname + end


def _end_of_names() -> str:
    """Returns what the names of this process's directories end with, "" for the chief."""
    try:
        cluster = Cluster.from_environment()
    except ValueError:  # which only a trainer of a group needs to raise
        ranks = map(os.environ.get, ("OMPI_COMM_WORLD_RANK", "SLURM_PROCID"))
        rank = next(filter(None, ranks), "0")
        return "" if rank == "0" else f"-worker{rank}"
    return "" if cluster is None or cluster.is_chief else f"-{cluster.job}{cluster.index}"


def close_logger_dir() -> None:
    """Closes `log.log` and forgets the log directory, as if none had been set."""
    for file in _log_files():
        _logger.removeHandler(file)
        file.close()


def _letter_of(answer: str) -> Optional[str]:
    answer = answer.strip().lower()
    return answer if answer in _ACTIONS.values() else _ACTIONS.get(answer)


def _ask_action(dirname: str) -> str:
    if not is_terminal(sys.stdin):
        warning(f"Log directory {dirname} exists, and there is no terminal to ask what to do.")
        return "n"
    warning(
        f"Log directory {dirname} exists! Please either backup/delete it, or use a new directory."
    )
    warning("If you're resuming from a previous run you can choose to keep it.")
    letter = None
    while letter is None:
        info("Select Action: k (keep) / b (backup) / d (delete) / n (new) / q (quit):")
        try:
            letter = _letter_of(input())
        except EOFError:
            letter = "q"
    return letter


def _visible_names(dirname: str) -> List[str]:
    """Returns what is in a directory that may be missing; names with a leading dot do not count."""
    names = os.listdir(dirname) if os.path.lexists(dirname) else []
    return [name for name in names if not name.startswith(".")]


def _clear_directory(dirname: str, letter: str) -> str:
    """Renames or deletes a directory; returns what is to be logged about it."""
    if letter == "b":
        return f"What was in {dirname} before is now in {move_to_backup(dirname)}."
    doomed, here = os.path.realpath(dirname), os.path.realpath("")
    if os.path.commonpath([doomed, here]) == doomed:
        raise ValueError(f"The program runs inside {dirname}, which is therefore not deleted.")
    shutil.rmtree(dirname)
    return f"What was in {dirname} before is deleted."


def _lock_new_directory(dirname: str) -> Tuple[DirectoryLock, str]:
    """Locks the first of `{dirname}-1`, ... (of a worker `{...}-1-worker1`) that no run uses and
    that has nothing in it but logs, those of starts that failed.
    """
    end = _end_of_names()
    base = dirname[: len(dirname) - len(end)]
    for number in itertools.count(1):
        path = f"{base}-{number}{end}"
        with suppress(DirectoryInUse, FileExistsError):
            os.makedirs(path, exist_ok=True)  # FileExistsError for a file
            lock = DirectoryLock(path)
            if all(name.startswith(_LOG) for name in _visible_names(path)):
                break
            lock.release()
    warning(f"This run logs to {path} instead.")
    return lock, path
