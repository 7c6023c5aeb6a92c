"""Which state a run resumes from, by its policy; `TrainConfig` describes the policies."""

import os
from typing import Optional, Sequence

from tensorpack.callbacks.base import Callback, innermost
from tensorpack.callbacks.saver import ModelSaver
from tensorpack.tfutils.checkpoint import (
    RestorePoint,
    find_restore_point,
    get_checkpoint_path,
    newest_valid,
    restore_point_at,
    verify,
)
from tensorpack.utils import logger
from tensorpack.utils._words import did_you_mean_file
from tensorpack.utils.checkpoints.find import NoValidCheckpoint, candidates

_WORDS = ("never", "auto", "must")


def state_directory(callbacks: Sequence[Callback]) -> Optional[str]:
    """Returns where the states of a run with these callbacks are, None if that is not known yet."""
    saver = find_state_saver(callbacks)
    return (saver and saver.checkpoint_dir) or logger.get_logger_dir()


def find_state_saver(callbacks: Sequence[Callback]) -> Optional[ModelSaver]:
    """Returns the one that saves the states of a run with these callbacks, None if none does."""
    savers = (each for each in map(innermost, callbacks) if isinstance(each, ModelSaver))
    return next((each for each in savers if each.saves_all), None)


def check_policy(resume: str) -> str:
    """Returns the policy."""
    path = os.fsdecode(resume)
    if not (path in _WORDS or os.path.exists(path) or os.path.exists(path + ".index")):
        raise ValueError(
            f"resume is {', '.join(_WORDS)}, or the path of a checkpoint or log directory; "
            f"there is nothing at {path!r}.{did_you_mean_file(path, '.index')}"
        )
    return path


def find_resumption(resume: str, directory: Optional[str]) -> Optional[RestorePoint]:
    """Returns the state from which a run with this policy resumes, None if it starts a new run.

    Raises:
      FileNotFoundError: the policy needs a checkpoint, and there is none.
      RuntimeError: the policy needs a log directory and there is none; or it is "must", and a part
        of the state is missing.
      CheckpointCorrupt: all checkpoints are damaged; `NoValidCheckpoint` lists them.
      UnsupportedState: the state was saved by another version of this library.
    """
    if resume == "never":
        left = None if directory is None else _newest_name(directory)
        if left is not None:
            logger.warning(
                f"A new run starts in {directory}, where an earlier one saved {left}. To resume "
                'that one, stop now and use resume="auto".'
            )
        return None
    is_word = resume in _WORDS
    if is_word and directory is None:
        raise RuntimeError(f"resume={resume!r} needs a call of logger.set_logger_dir() before it.")
    point = find_restore_point(str(directory)) if is_word else restore_point_at(resume, directory)
    if point is None and resume == "must":
        raise FileNotFoundError(
            f'There is no checkpoint in {directory}, and resume="must" needs one. Give the log '
            'directory of the run, or use resume="auto" to start a new run.'
        )
    if point is None:
        logger.info(f"There is nothing to resume in {directory}: a new run starts.")
        return None
    if resume == "auto" and point.state is None and point.prefix.endswith("-0"):
        # It has the initial variables, from when callbacks may not have begun.
        logger.warning(f"{point.prefix} was saved before the first step, so a new run starts.")
        return None
    check_complete(point, resume == "must")
    return point


def check_complete(point: RestorePoint, strictly: bool) -> None:
    if point.problem is None:
        return
    problem = point.problem.rstrip(".")
    if strictly:
        raise RuntimeError(
            f'The run cannot be continued exactly, as resume="must" requires: {problem}. '
            'resume="auto" continues it as well as possible.'
        )
    logger.warning(f"The run cannot be continued exactly: {problem}")


def prepare_log_dir(dirname: str, resume: str = "never") -> str:
    """Sets the log directory for a policy, and returns the policy for the run.

    A run that resumes keeps the log directory without a question; that of a path is the directory
    that it is in. With "never", the user is asked about a directory that has files in it, at a
    terminal: the answer "keep" resumes from it. Elsewhere a new numbered directory is taken, with a
    warning that names what could have been resumed. The same holds where the process has the
    directory already, as in a notebook, if a run has saved there.

    Raises:
      ValueError: the path does not exist, see also `logger.set_logger_dir`.
      FileNotFoundError: there is no checkpoint at the path; nothing was made or changed.
      CheckpointCorrupt: the file at the path is damaged, or not a checkpoint; the same.
    """
    resume = check_policy(resume)
    dirname = logger.dir_of_process(dirname)
    if resume in ("auto", "must"):
        logger.set_logger_dir(dirname, "keep")
        return resume
    if resume != "never":
        folder = os.path.abspath(resume)
        if not os.path.isdir(folder):  # what holds no state is refused before anything is written
            verify(get_checkpoint_path(resume), content=False)
            folder = os.path.dirname(folder)
        elif not candidates(resume):
            raise FileNotFoundError(f"There is no checkpoint in {resume}: nothing can be resumed.")
        logger.set_logger_dir(folder, "keep")
        return resume
    left = _newest_name(dirname)
    if left is not None:
        logger.warning(
            f"{dirname} holds a run that saved {left}. It is resumed by --resume auto (in a "
            'script: resume="auto").'
        )
        current = logger.get_logger_dir()
        if current is not None and os.path.realpath(current) == os.path.realpath(dirname):
            logger.close_logger_dir()  # the user is asked about it as about any other
    return "auto" if logger.set_logger_dir(dirname) == "k" and candidates(dirname) else "never"


def _newest_name(directory: str) -> Optional[str]:
    """Returns the name of the newest checkpoint in a directory, None if there is none."""
    try:
        found = newest_valid(directory, content=False)
    except NoValidCheckpoint:
        return "checkpoints that are all damaged"
    return None if found is None else os.path.basename(found)
