"""The state of a run without its variables: which one a run resumes from, and what it holds.

`TrainConfig` describes the policies. A state is captured between two steps, or between the turns of
two callbacks. It is a tree as `Callback.state_dict` describes it.
"""

import os
import random
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from tensorpack.callbacks.base import Callback, innermost
from tensorpack.callbacks.monitors.json_writer import JSONWriter
from tensorpack.callbacks.saver import ModelSaver
from tensorpack.tfutils.checkpoint import (
    RestorePoint,
    find_restore_point,
    get_checkpoint_path,
    newest_valid,
    restore_point_at,
    verify,
)
from tensorpack.tfutils.common import get_global_step_value
from tensorpack.tfutils.sessinit import ExactRestore
from tensorpack.utils import logger
from tensorpack.utils._words import did_you_mean_file
from tensorpack.utils.checkpoints.find import NoValidCheckpoint, candidates
from tensorpack.utils.rng import rng_state, set_rng_state, set_streams_state, streams_state

_WORDS = ("never", "auto", "must")
_NUMPY_STREAM: Any = np.random  # the module has the methods of the generator behind its functions


class Position(NamedTuple):
    """The position of a run.

    Attributes:
      hook: the round of callbacks that is unfinished, None if there is none.
      turns: names of the callbacks that had their turn in it.
    """

    epoch: int
    steps_done: int
    hook: Optional[str]
    turns: List[str]

    @property
    def epoch_is_over(self) -> bool:
        """Whether nothing of the epoch is left except a part of its `trigger_epoch`."""
        return self.hook == "trigger_epoch"


class RunState:
    """Captures the state of a trainer's run, and restores it in a trainer that resumes the run.

    Attributes:
      position: of the earlier run; None if there is none, or if it is not known.
      first_epoch: number of the first epoch that is run, from its beginning or not.
      step: that of the state to resume from, None for the newest one; set before `find`.
    """

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer
        self._restore_point: Optional[RestorePoint] = None
        self.position: Optional[Position] = None
        self.first_epoch = 1
        self.step: Optional[int] = None

    def find(self, resume: str, callbacks: Sequence[Callback]) -> None:
        """Finds the state to resume from, before anything is built that takes time."""
        directory, strictly = state_directory(callbacks), resume == "must"
        if self.step is None:
            point = find_resumption(resume, directory)
        else:
            point = restore_point_at(os.path.join(str(directory), f"model-{self.step}"), directory)
        if point is not None:
            _check_complete(point, strictly)
            self._trainer.resumed, self._trainer.resumed_from = True, point.prefix
            self._trainer.resume_strictly = strictly
        self._restore_point = point

    def session_init(self, otherwise: Any) -> Any:
        """Returns what sets the variables: the state that was found, if any."""
        if self._restore_point is None:
            return otherwise
        trainer, prefix = self._trainer, self._restore_point.prefix
        return ExactRestore(prefix, trainer.variables_to_save(), strictly=trainer.resume_strictly)

    def load(self, callbacks: Any, starting_epoch: int) -> None:
        """Restores the states of the callbacks, after the variables."""
        self.first_epoch = starting_epoch
        if self._restore_point is None:
            return
        state = self._restore_point.state
        if state is None:
            self.first_epoch = self._guess_epoch() + 1
            return
        self.position = Position(**state["position"])
        self.first_epoch = self.position.epoch + int(self.position.epoch_is_over)
        self._compare_sizes(state)
        strictly = self._trainer.resume_strictly
        callbacks.load_states(state["callbacks"], state["callback_names"], strictly)

    def load_random(self) -> None:
        """Sets the random streams of the process, after all draws at the start."""
        if self._restore_point is not None and self._restore_point.state is not None:
            _load_random_state(self._restore_point.state["random"])
            self._restore_point = None  # it may be large

    def capture(self, callbacks: Any, interrupted: bool) -> Dict[str, Any]:
        """Returns the state of the run now, see `Trainer.run_state`."""
        return {
            "position": dict(self.position_of(callbacks, interrupted)._asdict()),
            "global_step": self._trainer.steps_taken,
            **self._sizes(),
            "random": _random_state(),
            "callback_names": callbacks.names(),
            # The last one: from then on the owners of segments wait for the end of the save.
            "callbacks": callbacks.state_dict(),
        }

    def position_of(self, callbacks: Any, interrupted: bool) -> Position:
        """Returns the position of the run now, see `Trainer.run_state`."""
        hook, turns = callbacks.unfinished_hook(with_current=not interrupted)
        return Position(self._trainer.epoch_num, self._trainer.steps_done, hook, turns)

    def _guess_epoch(self) -> int:
        """The epoch that ended with the global step, by stats.json, or else by counting."""
        step, steps_per_epoch = get_global_step_value(), self._trainer.config.steps_per_epoch
        directory = logger.get_logger_dir()
        lines = JSONWriter.load_existing_json(directory) if directory is not None else None
        epochs = [line["epoch_num"] for line in lines or [] if line.get("global_step") == step]
        epoch = int(epochs[-1]) if epochs else step // max(steps_per_epoch, 1)
        logger.warning(f"The position of the run is not known: it continues after epoch {epoch}.")
        return epoch

    def _sizes(self) -> Dict[str, int]:
        """Returns what the run consists of; the state has it, too."""
        return {
            "steps_per_epoch": self._trainer.config.steps_per_epoch,
            "workers": getattr(getattr(self._trainer, "cluster", None), "num_workers", 1),
            "towers": len(getattr(self._trainer, "tower_ids", [0])),
        }

    def _compare_sizes(self, state: Dict[str, Any]) -> None:
        for name, now in self._sizes().items():
            before = state.get(name, now)  # states of earlier versions have steps_per_epoch only
            message = f"The run had {name}={before} when its state was saved, and has {now} now."
            if before != now and self._trainer.resume_strictly and name != "towers":
                raise ValueError(f"{message} Start it with {name}={before} to continue exactly.")
            if before != now:
                logger.warning(message)


def _random_state() -> Dict[str, Any]:
    """Returns the state of the random streams that belong to the process and not to an object."""
    version, numbers, gauss = random.getstate()
    python = {"version": version, "numbers": np.array(numbers, np.uint32), "gauss": gauss}
    return {"streams": streams_state(), "numpy": rng_state(_NUMPY_STREAM), "python": python}


def _load_random_state(state: Dict[str, Any]) -> None:
    python = state["python"]
    random.setstate((python["version"], tuple(python["numbers"].tolist()), python["gauss"]))
    set_rng_state(_NUMPY_STREAM, state["numpy"])
    set_streams_state(state["streams"])


def state_directory(callbacks: Sequence[Callback]) -> Optional[str]:
    """Returns where the states of a run with these callbacks are, None if that is not known yet."""
    return _directory_of(state_saver_of(callbacks))


def state_saver_of(callbacks: Sequence[Callback]) -> Optional[ModelSaver]:
    """Returns the one that saves the states of a run with these callbacks, None if none does.

    Raises:
      ValueError: two write to one directory.
    """
    savers = {cb: None for cb in map(innermost, callbacks) if isinstance(cb, ModelSaver)}
    directories = [os.path.realpath(_directory_of(saver) or "") for saver in savers]
    for path in directories:
        if directories.count(path) > 1:
            raise ValueError(
                f"Two ModelSavers of this run write to {path}, and would replace each other's "
                "checkpoints: give one of them a checkpoint_dir of its own."
            )
    return next((saver for saver in savers if saver.saves_all), None)


def _directory_of(saver: Optional[ModelSaver]) -> Optional[str]:
    return (saver and saver.checkpoint_dir) or logger.get_logger_dir()


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
      RuntimeError: the policy needs a log directory and there is none.
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
        logger.warning(f"{point.prefix} was saved before the first step, so a new run starts.")
        return None
    return point


def _check_complete(point: RestorePoint, strictly: bool) -> None:
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
        newest = newest_valid(directory, content=False)
    except NoValidCheckpoint:
        return "checkpoints that are all damaged"
    return None if newest is None else os.path.basename(newest)
