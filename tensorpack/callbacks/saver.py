"""Saves the model every so often, and keeps the best one."""

import os
import time
from typing import Any, List, Optional, Sequence, Union

from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import CheckpointCorrupt
from tensorpack.tfutils.checkpoint_store import CheckpointStore, copy_checkpoint
from tensorpack.utils import logger

from ._files import ERRORS, disk_trouble
from .base import Callback

__all__ = ["MaxSaver", "MinSaver", "ModelSaver"]


class ModelSaver(Callback):
    """Saves the variables to `model-{global_step}` when triggered, which is every epoch by default.

    A checkpoint that is logged as saved is whole and on the disk, see `CheckpointStore`. A save
    that fails because of the disk changes nothing and is logged as an error, and the training goes
    on: the next trigger tries again. If the last save of the run failed, the run ends with an
    error.

    Args:
      max_to_keep: how many checkpoints are kept, at least two; 0 for all.
      keep_checkpoint_every_n_hours: keep one for ever each time so many hours have passed.
      checkpoint_dir: where to save; the log directory by default.
      var_collections: name or names of the collections of variables to save; all global variables
        by default.
    """

    sets_up_last = True  # variables that others add while they are set up are saved too

    def __init__(
        self,
        max_to_keep: int = 10,
        keep_checkpoint_every_n_hours: float = 0.5,
        checkpoint_dir: Optional[str] = None,
        var_collections: Union[None, str, Sequence[str]] = None,
    ) -> None:
        if var_collections is None:
            var_collections = tf.GraphKeys.GLOBAL_VARIABLES
        if isinstance(var_collections, str):
            var_collections = [var_collections]
        self._collections = list(var_collections)
        self._max_to_keep = max_to_keep
        self._keep_hours = keep_checkpoint_every_n_hours
        self.checkpoint_dir: str = checkpoint_dir or logger.get_logger_dir() or ""
        self.saver: Optional[tf.train.Saver] = None
        self._store: Optional[CheckpointStore] = None
        self._failure: Optional[Exception] = None

    def _setup_graph(self) -> None:
        self.checkpoint_dir = _directory(self.checkpoint_dir, "ModelSaver")
        os.makedirs(self.checkpoint_dir, exist_ok=True)
        # The store deletes old checkpoints, so this one is to know of none.
        self.saver = tf.train.Saver(self._variables(), max_to_keep=0)
        self._store = CheckpointStore(self.checkpoint_dir, self._max_to_keep, self._keep_hours)

    def _variables(self) -> List[tf.Variable]:
        found = {}
        for key in self._collections:
            for variable in tf.get_collection(key):
                found[variable.op.name] = variable
        if not found:
            raise ValueError(f"There are no variables to save in {', '.join(self._collections)}.")
        return [found[name] for name in sorted(found)]

    def _before_train(self) -> None:
        path = os.path.join(self.checkpoint_dir, time.strftime("graph-%m%d-%H%M%S.meta"))
        try:
            self._save_graph(path)
        except ERRORS as error:
            reason = disk_trouble(error, path)
            if reason is None:
                raise
            logger.error(f"Cannot save the graph to {path}: {reason}")
        if self.global_step:  # a run is continued
            self._store.adopt()

    def _save_graph(self, path: str) -> None:
        keys = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.TRAINABLE_VARIABLES]
        self.saver.export_meta_graph(path, collection_list=keys)

    def _trigger(self) -> None:
        path = self._store.path_of(self.global_step)
        try:
            self._store.save(self.global_step, self._write)
        except ERRORS as error:
            reason = disk_trouble(error, path)
            if reason is None:
                raise
            self._failure = error
            logger.error(f"Cannot save the model to {path}, the next period tries again: {reason}")
        else:
            self._failure = None
            logger.info(f"Model saved to {path}.")

    def _write(self, path: str) -> None:
        session = tf.get_default_session()
        self.saver.save(session, path, write_meta_graph=False, write_state=False)

    def _after_train(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise RuntimeError(
                f"The last save of the model to {self.checkpoint_dir} failed: the newest "
                "checkpoint there is older than the training."
            ) from failure


class MinSaver(Callback):
    """Keeps a copy of the checkpoint for which a scalar was least, as `min-{stat}`.

    To be put behind the `ModelSaver` and what computes the scalar, in the list of callbacks. Only
    a checkpoint and a value of the same step belong together; otherwise it warns.

    Args:
      monitor_stat: name of the scalar in `trainer.monitors`.
      reverse: keep the greatest instead.
      filename: name of the copy; `min-{stat}` or `max-{stat}` by default, with `-` for `/`.
      checkpoint_dir: where the checkpoints are; the log directory by default.
    """

    def __init__(
        self,
        monitor_stat: str,
        reverse: bool = False,
        filename: Optional[str] = None,
        checkpoint_dir: Optional[str] = None,
    ) -> None:
        self.monitor_stat = monitor_stat
        self.reverse = reverse
        self.filename = filename
        self.checkpoint_dir: str = checkpoint_dir or logger.get_logger_dir() or ""
        self.best: Any = None  # (global_step, value)

    @property
    def _kind(self) -> str:
        return "maximum" if self.reverse else "minimum"

    def _setup_graph(self) -> None:
        self.checkpoint_dir = _directory(self.checkpoint_dir, type(self).__name__)

    def _trigger(self) -> None:
        try:
            step, value = self.trainer.monitors.get_history(self.monitor_stat)[-1]
        except KeyError:
            logger.warning(f"{self} does nothing: {self.monitor_stat} has no value yet.")
            return
        if not self._is_better(value):
            return
        newest = tf.train.latest_checkpoint(self.checkpoint_dir)
        if newest is None:
            raise RuntimeError(
                f"{self} found no checkpoint in {self.checkpoint_dir}: put a ModelSaver before it."
            )
        if newest.rpartition("-")[2] != str(step):
            logger.warning(
                f"{self.monitor_stat} is from step {step}, but the newest checkpoint is {newest}: "
                f"{self} does nothing. Trigger both in the same epochs."
            )
            return
        self._keep(newest, step, value)

    def _is_better(self, value: float) -> bool:
        if value != value:  # NaN
            return False
        if self.best is None:
            return True
        return value > self.best[1] if self.reverse else value < self.best[1]

    def _keep(self, newest: str, step: int, value: float) -> None:
        name = self.filename or f"{self._kind[:3]}-{self.monitor_stat}".replace("/", "-")
        target = os.path.join(self.checkpoint_dir, name)
        try:
            copy_checkpoint(newest, target)
        except (CheckpointCorrupt, OSError) as error:
            logger.error(f"Cannot keep {newest} as {target}: {error}")
            return
        self.best = (step, value)
        logger.info(
            f"Model at global_step={step} with {self._kind} {self.monitor_stat}={value:.5g} saved."
        )


class MaxSaver(MinSaver):
    """Keeps a copy of the checkpoint for which a scalar was greatest, as `max-{stat}`.

    Args:
      monitor_stat: name of the scalar in `trainer.monitors`.
      filename: name of the copy.
      checkpoint_dir: where the checkpoints are; the log directory by default.
    """

    def __init__(
        self,
        monitor_stat: str,
        filename: Optional[str] = None,
        checkpoint_dir: Optional[str] = None,
    ) -> None:
        super().__init__(monitor_stat, True, filename=filename, checkpoint_dir=checkpoint_dir)


def _directory(given: str, who: str) -> str:
    directory = given or logger.get_logger_dir()
    if directory is None:
        raise RuntimeError(
            f"{who} does not know where the checkpoints are: call logger.set_logger_dir(), or give "
            "checkpoint_dir."
        )
    return directory
