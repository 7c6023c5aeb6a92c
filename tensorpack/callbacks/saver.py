"""Saves the model, and with it the state of the run, every so often."""

import glob
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Callable, Dict, Optional, Sequence, Union

from tensorpack.compat import A_YEAR
from tensorpack.compat import tfv1 as tf
from tensorpack.tfutils.checkpoint import CheckpointStore
from tensorpack.utils import logger
from tensorpack.utils._directory_lock import absolute_directory
from tensorpack.utils._words import size_text
from tensorpack.utils.argtools import accepts_old_keywords
from tensorpack.utils.checkpoints.segments import abandon
from tensorpack.utils.checks import as_count, as_names

from ._disk import survive
from .base import Callback
from .finite import FiniteCheck, NonFiniteError

__all__ = ["ModelSaver", "find_directory"]

_MUCH = 10**7  # bytes on the disk


class ModelSaver(Callback):
    """Saves the variables to `model-{global_step}` when triggered, which is every epoch by default,
    and with them everything else that is needed to resume the run.

    A save that is logged is whole and on the disk, see `CheckpointStore`. A save that fails because
    of the disk changes nothing and is logged as an error, and the training continues: the next
    trigger tries again. If the last save of the run failed, the run ends with an error. It also
    ends with an error if the directory was replaced by another one during the run.

    The state of the run is saved by the first `ModelSaver` of the list that saves all global
    variables. It also saves when a signal ends the run.

    Args:
      max_to_keep: how many checkpoints are kept, at least two; 0 or -1 for all.
      keep_checkpoint_every_n_hours: one is kept for ever per so many hours; `math.inf` for none.
      checkpoint_dir: where to save, in UTF-8; the log directory by default. If there is none, one
        is made as by `logger.auto_set_dir`, a new one where the first is taken.
      var_collections: name or names of the collections of variables to save; all global variables
        by default.
      asynchronous: whether the training waits only until the values are copied, to memory kept for
        that; then they are checked and written. A save waits until the one before is written.

    Attributes:
      last_path: of the last checkpoint that this run has saved or was resumed from, or None.
      failure: the error of the last save, if the disk failed, or None.
    """

    sets_up_last = True  # variables that others add while they are set up are saved too

    @accepts_old_keywords(keep_recent="max_to_keep", keep_freq="keep_checkpoint_every_n_hours")
    def __init__(
        self,
        max_to_keep: int = 10,
        keep_checkpoint_every_n_hours: float = 0.5,
        checkpoint_dir: Optional[str] = None,
        var_collections: Union[None, str, Sequence[str]] = None,
        asynchronous: bool = False,
    ) -> None:
        if not isinstance(asynchronous, bool):
            raise TypeError(
                f"ModelSaver: asynchronous must be True or False, but got {asynchronous!r}. The "
                "fifth argument of 2017 was keep_recent, which is max_to_keep: pass it by name."
            )
        everything = tf.GraphKeys.GLOBAL_VARIABLES
        collections = everything if var_collections is None else var_collections
        self._collections = as_names(self, "var_collections", collections)
        self.saves_all = self._collections == [everything]
        self._max_to_keep = max(0, as_count(self, "max_to_keep", max_to_keep or 0, least=-1))
        self._keep_hours = keep_checkpoint_every_n_hours
        self.checkpoint_dir = absolute_directory(checkpoint_dir) or logger.get_logger_dir() or ""
        self.saver: Optional[tf.train.Saver] = None
        self._asynchronous = asynchronous
        self._saving: Any = None  # the thread of a save in the background, and its result
        self.failure: Optional[Exception] = None
        self._saved_at: Any = None  # the position of the run
        self._path = ""  # of what is being saved
        self._size_logged = False
        self.last_path: Optional[str] = None

    def _setup_graph(self) -> None:
        self.checkpoint_dir = find_directory(self.checkpoint_dir, "ModelSaver")
        os.makedirs(self.checkpoint_dir, exist_ok=True)
        variables = [var for key in self._collections for var in tf.get_collection(key)]
        if self.saves_all:
            variables = self.trainer.variables_to_save()
        if not variables:
            raise ValueError(f"There are no variables to save in {', '.join(self._collections)}.")
        by_name = {var.op.name: var for var in variables}  # also of each part of a variable
        values: Dict[str, Any] = dict(sorted(by_name.items()))
        self.saver = self._writer = tf.train.Saver(values, max_to_keep=0)  # the store deletes them
        if self._asynchronous:  # into the same memory each time: new pages take longer than copying
            with tf.name_scope("ModelSaver"), tf.device("/cpu:0"):
                new = partial(tf.raw_ops.VariableV2, shape=tf.TensorShape(None))  # it may change
                copies = {k: new(dtype=v.dtype.base_dtype, name=k) for k, v in values.items()}
                assign = partial(tf.assign, validate_shape=False)
                self._copy = tf.group(*map(assign, copies.values(), values.values()))
                values, self._writer = copies, tf.train.Saver(copies, max_to_keep=0)
        self._finite = FiniteCheck(values)
        self._store = CheckpointStore(self.checkpoint_dir, self._max_to_keep, self._keep_hours)

    def _before_train(self) -> None:
        self.failure = None
        path = os.path.join(self.checkpoint_dir, time.strftime("graph-%m%d-%H%M%S.meta"))
        keys = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.TRAINABLE_VARIABLES]
        export = partial(self.saver.export_meta_graph, path, collection_list=keys)
        survive(export, f"Cannot save the graph to {path}", path, logger.error)
        if self.global_step:  # a run is continued
            self._store.adopt()
        prefix = self.trainer.resumed_from if self.trainer.state_saver is self else None
        if prefix is not None:
            self.last_path = prefix
            self._guarded(lambda: self._store.resume_from(prefix))

    def _trigger(self) -> None:
        self._save(interrupted=False)

    def save_interrupted(self) -> None:
        """Saves a run that was interrupted, unless nothing has happened since the last save; waits
        until it is written.
        """
        self.wait()
        if self._saved_at != self.trainer.position(interrupted=True):
            self._save(interrupted=True)
            self.wait()

    def wait(self) -> None:
        """Waits until a save in the background has been written."""
        if self._saving is not None:
            (thread, saved), self._saving = self._saving, None
            thread.shutdown()
            self._guarded(saved.result)

    def _save(self, interrupted: bool) -> None:
        self.wait()
        self.trainer.prepare_save()
        session = tf.get_default_session()
        if self._asynchronous:
            session.run(self._copy)
        saves_state = self.trainer.state_saver is self
        state = self.trainer.run_state(interrupted) if saves_state else None
        step = self.global_step if state is None else state["global_step"]
        self._path = self._store.path_of(step)
        position = None if state is None else tuple(state["position"].values())

        def save() -> None:
            self._store.save(step, partial(self._write, session, step), state)
            self.failure, self._saved_at = None, position
            self.last_path = self._path
            logger.info(f"Model saved to {self._path}.")
            self._log_size()

        if not self._asynchronous:
            self._guarded(save)
            return
        try:
            thread = ThreadPoolExecutor(1, "ModelSaver")
            self._saving = thread, thread.submit(save)
        except BaseException:
            abandon(state)
            raise

    def _log_size(self) -> None:
        """Logs once what the checkpoints will take on the disk, if that is much."""
        files = [] if self._size_logged else glob.glob(glob.escape(self._path) + ".*")
        size, count = sum(map(os.path.getsize, files)), max(self._max_to_keep, 2)
        self._size_logged = True
        if count * size >= _MUCH:
            total = f"{count} are kept, {size_text(count * size)} in all"
            total = total if self._max_to_keep else "all of them are kept"
            logger.info(f"A checkpoint takes {size_text(size)}; {total}.")

    def _guarded(self, save: Callable[[], None]) -> None:
        """Saves, or waits for a save; an error of the disk is kept for the end of the run."""
        message = f"Cannot save the model to {self._path}, the next period tries again"
        self.failure = survive(save, message, self._path, logger.error) or self.failure

    def _write(self, session: tf.Session, step: int, path: str) -> None:
        """Writes the values, or their copies on any thread, if they are finite."""
        bad = self._finite.first_bad(session)
        if bad is not None:
            raise NonFiniteError(
                f"{bad} is not finite after global_step {step}, so the model is not saved. Look at "
                "the data of this step, the learning rate, and what is divided by."
            )
        saver, limit = self._writer.saver_def, tf.RunOptions(timeout_in_ms=A_YEAR)  # a slow disk
        session.run(saver.save_tensor_name, {saver.filename_tensor_name: path}, limit)

    def _after_train(self) -> None:
        self.wait()
        if self.failure is not None:
            raise RuntimeError(
                f"The last save of the model to {self.checkpoint_dir} failed: the newest "
                "checkpoint there is older than the training."
            ) from self.failure


def find_directory(directory: str, owner: str) -> str:
    """Returns the directory of the checkpoints: this one, the log directory, or a new one, which
    is named after the script; a RuntimeError if there is no script.
    """
    directory = directory or logger.get_logger_dir() or ""
    if not directory:
        if not hasattr(sys.modules["__main__"], "__file__"):
            raise RuntimeError(
                f"{owner} does not know where the checkpoints are: call logger.set_logger_dir(), "
                "or give checkpoint_dir."
            )
        logger.auto_set_dir("new")
        directory = str(logger.get_logger_dir())
        logger.info(f"{owner} keeps its checkpoints in {directory}: no log directory had been set.")
    return directory
