"""Whether a run goes on from a state that an earlier one saved, and from which.

The policy is one word or a path: "never" begins anew; "auto" goes on where there is something to go
on from; "must" goes on exactly, or raises; a path goes on from that checkpoint, or from the newest
one in that directory.
"""

import os
from typing import Any, Dict, Optional

from tensorpack.tfutils.checkpoint import get_checkpoint_path
from tensorpack.tfutils.checkpoint_search import (
    NoValidCheckpoint,
    candidates,
    newest_valid,
    verify,
)
from tensorpack.tfutils.saved_state import SavedState, newest_state, state_at
from tensorpack.utils import logger

__all__ = ["Resumption", "check_policy", "find_resumption", "prepare_log_dir"]

_WORDS = ("never", "auto", "must")


class Resumption:
    """What a run goes on from.

    Args:
      saved: the state on the disk.
      strictly: whether what cannot be continued exactly is an error.
      directory: where the next state will be saved; None where nobody knows.

    Attributes:
      prefix: of the checkpoint with the variables.
      state: the tree that `Trainer.run_state` returned; None if there are variables only.
      strictly: the same.

    Raises:
      RuntimeError: `strictly`, and something is missing.
      CheckpointCorrupt: the state cannot be read.
    """

    def __init__(self, saved: SavedState, strictly: bool, directory: Optional[str] = None) -> None:
        self.prefix = saved.prefix
        self.strictly = strictly
        problem = saved.problem()
        if problem is not None:
            problem = problem.rstrip(".")
            if strictly:
                raise RuntimeError(
                    f'The run cannot be continued exactly, as resume="must" wants: {problem}. '
                    'With resume="auto" it goes on as well as it can.'
                )
            logger.warning(f"The run cannot be continued exactly: {problem}")
        self.state: Optional[Dict[str, Any]] = saved.read(directory)


def check_policy(resume: str) -> str:
    """Returns the policy.

    Raises:
      ValueError: it is neither a word nor a path at which there is something.
    """
    path = os.fspath(resume)
    known = path in _WORDS or os.path.exists(path) or os.path.exists(path + ".index")
    if not known:
        raise ValueError(
            f"resume is {', '.join(_WORDS)}, or the path of a checkpoint or log directory; "
            f"there is nothing at {path!r}."
        )
    return path


def find_resumption(resume: str, directory: Optional[str]) -> Optional[Resumption]:
    """Returns what a run with this policy goes on from, None if it begins anew.

    Args:
      resume: the policy.
      directory: where states are, the log directory mostly; None if there is none.

    Raises:
      FileNotFoundError: there must be something, and there is not.
      RuntimeError: the policy needs a log directory and there is none, or see `Resumption`.
      CheckpointCorrupt: everything there is, is damaged; `NoValidCheckpoint` lists it.
    """
    if resume == "never":
        _warn_of_what_is_left(directory)
        return None
    if resume not in _WORDS:
        return Resumption(state_at(resume), strictly=False, directory=directory)
    if directory is None:
        raise RuntimeError(
            f"resume={resume!r} looks into the log directory: call logger.set_logger_dir() first."
        )
    saved = newest_state(directory)
    if saved is not None and resume == "auto" and _is_from_before_training(saved):
        logger.warning(f"{saved.prefix} was saved before the first step, so the run begins anew.")
        return None
    if saved is not None:
        return Resumption(saved, strictly=resume == "must", directory=directory)
    if resume == "must":
        raise FileNotFoundError(
            f'There is no checkpoint in {directory}, and resume="must" needs one. Give the log '
            'directory of the run, or use resume="auto" to begin anew.'
        )
    logger.info(f"There is nothing to resume in {directory}: the run begins anew.")
    return None


def prepare_log_dir(dirname: str, resume: str = "never") -> str:
    """Sets the log directory as a policy wants it, and returns the policy to go on with.

    Whoever resumes keeps the log directory and is asked nothing; that of a path is the directory
    that it is in. With "never", a directory with files in it is asked about at a terminal, where
    the answer "keep" resumes from what is there; elsewhere a new numbered one is taken, with a
    warning that names what could have been resumed. That the process has the directory already, as
    in a notebook, changes nothing of this where a run has saved there.

    Args:
      dirname: the log directory.
      resume: the policy.

    Raises:
      ValueError: there is nothing at the path, see also `logger.set_logger_dir`.
      FileNotFoundError: there is no checkpoint at the path; nothing was made or changed.
      CheckpointCorrupt: the one at the path is damaged, or none; the same.
    """
    resume = check_policy(resume)
    if resume in ("auto", "must"):
        logger.set_logger_dir(dirname, "keep")
        return resume
    if resume != "never":
        _check_path(resume)
        path = os.path.abspath(resume)
        logger.set_logger_dir(path if os.path.isdir(path) else os.path.dirname(path), "keep")
        return resume
    left = _newest_name(dirname)
    if left is not None:
        logger.warning(
            f"{dirname} holds a run that saved {left}. It is resumed by --resume auto (in a "
            'script: resume="auto").'
        )
        if _is_log_dir(dirname):
            logger.close_logger_dir()  # so that it is asked about as any other
    answer = logger.set_logger_dir(dirname)
    return "auto" if answer == "k" and candidates(dirname) else "never"


def _is_log_dir(dirname: str) -> bool:
    current = logger.get_logger_dir()
    return current is not None and os.path.realpath(current) == os.path.realpath(dirname)


def _check_path(path: str) -> None:
    """Raises where a path can be known to hold no state, before anything is written."""
    if not os.path.isdir(path):
        verify(get_checkpoint_path(path))
    elif not candidates(path):
        raise FileNotFoundError(f"There is no checkpoint in {path}: nothing can be resumed.")


def _is_from_before_training(saved: SavedState) -> bool:
    """Whether there are only variables, from when callbacks may not have begun."""
    return saved.prefix.endswith("-0") and not saved.has_state


def _warn_of_what_is_left(directory: Optional[str]) -> None:
    left = None if directory is None else _newest_name(directory)
    if left is not None:
        logger.warning(
            f"The run begins anew in {directory}, where an earlier one saved {left}. To go on with "
            'that one, stop now and use resume="auto".'
        )


def _newest_name(directory: str) -> Optional[str]:
    """Name of the newest checkpoint in a directory, None if there is none."""
    try:
        found = newest_valid(directory)
    except NoValidCheckpoint:
        return "checkpoints that are all damaged"
    return None if found is None else os.path.basename(found)
