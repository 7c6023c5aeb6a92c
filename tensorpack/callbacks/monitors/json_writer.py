"""Writes the scalars of every epoch to `stats.json`."""

import json
import math
import os
from typing import Any, Callable, Dict, List, Optional, Tuple

from tensorpack.runs.statistics import FILENAME, RESERVED, read_epochs
from tensorpack.utils import logger
from tensorpack.utils.atomic import keep_backup, move_to_backup, write_atomic

from .._disk import survive
from ..monitor import LastValues


class JSONWriter(LastValues):
    """Keeps `stats.json` in `logdir`, the log directory by default: a list with one object for each
    epoch, such as ::

        {"epoch_num": 1, "global_step": 25000, "cost": 0.001137, "learning_rate": 0.001}

    The values are the last ones put in that epoch; NaN and infinite ones, which JSON does not have,
    are `null`. To make a table of it: `pandas.read_json("stats.json")`. Without a directory nothing
    is written. A scalar named `epoch_num` or `global_step` is written under `scalar/epoch_num` or
    `scalar/global_step`. The file is replaced atomically after each epoch. A failing disk causes
    one warning, and the next epoch tries again.

    A run continues the epochs in the file that end where it begins, or earlier. If there are others
    the old file is kept with `.MMDD-HHMMSS` behind its name, and if it cannot be read to its end
    with `.corrupt`.
    """

    sets_up_last = True  # a saver may set the log directory

    def __init__(self, logdir: Optional[str] = None) -> None:
        super().__init__()
        self._logdir = os.path.abspath(logdir) if logdir else ""
        self._texts: List[str] = []  # of all epochs but the last one, which still changes
        self._last: Dict[str, Any] = {}
        self._has_read = False
        self._warned = False

    @staticmethod
    def load_existing_json(dir: Optional[str] = None) -> Optional[List[Dict[str, Any]]]:
        """Returns the epochs in the file of a directory, the log directory by default, the complete
        ones if it is truncated, with None for NaN; None if there is no file.
        """
        path = os.path.join(dir or logger.get_logger_dir() or "", FILENAME)
        return _read(path)[0] if os.path.exists(path) else None

    @staticmethod
    def load_existing_epoch_number(dir: Optional[str] = None) -> Optional[int]:
        """Returns the number of the last epoch in the file, or None if there is none."""
        epochs = JSONWriter.load_existing_json(dir)
        return int(epochs[-1]["epoch_num"]) if epochs else None

    def _setup_graph(self) -> None:
        self._logdir = self._logdir or logger.get_logger_dir() or ""
        if not self._logdir:
            logger.warning(f"No {FILENAME} is written: there is no log directory to put it in.")
        self._path = os.path.join(self._logdir, FILENAME)

    def _before_train(self) -> None:
        self._survive(self._continue_file)

    def _continue_file(self) -> None:
        """Reads the file of an earlier run; after an `OSError` it is tried again."""
        path, step = self._path, self.global_step
        end = self.trainer.starting_epoch + bool(self.trainer.resumed)
        all_epochs, whole = _read(path)
        epochs = [e for e in all_epochs if e["epoch_num"] < end and e["global_step"] <= step]
        moved = not whole or epochs != all_epochs
        if moved:
            why, suffix = ("has later epochs", "") if whole else ("cannot be read", ".corrupt")
            copy = (keep_backup if epochs else move_to_backup)(path, suffix)
            logger.warning(
                f"{path} {why}, so it is kept as {copy}; this run continues its first "
                f"{len(epochs)} epochs."
            )
        elif epochs:
            last = epochs[-1]["epoch_num"]
            logger.info(f"This run appends to {path}, which ends with epoch {last}.")
        if epochs and not self._last:
            self._last = epochs.pop()
        self._texts[:0] = map(json.dumps, epochs)
        self._has_read = True
        if moved and self._last:
            self._save()

    def _before_epoch(self) -> None:
        """Adds the scalars that later callbacks put for the last epoch."""
        if self._values and self._last.get("global_step") == self.global_step:
            self._take_scalars()

    _after_train = _before_epoch

    def _trigger(self) -> None:
        if self._values:
            if self._last and self._last["epoch_num"] != self.epoch_num:
                self._texts.append(json.dumps(self._last))
                self._last = {}
            self._last.update(epoch_num=self.epoch_num, global_step=self.global_step)
            self._take_scalars()

    def _take_scalars(self) -> None:
        for name, value in self._values.items():
            key = f"scalar/{name}" if name in RESERVED else name
            self._last[key] = value if math.isfinite(value) else None
        self._values.clear()
        self._survive(self._save)

    def _save(self) -> None:
        if not self._has_read:  # the disk failed before
            self._continue_file()
        os.makedirs(self._logdir, exist_ok=True)
        text = ", ".join([*self._texts, json.dumps(self._last)])
        write_atomic(self._path, f"[{text}]".encode())

    def _survive(self, action: Callable[[], None]) -> None:
        if self._logdir:
            message = f"Cannot write {self._path}, the training continues"
            self._warned |= survive(action, message, quiet=self._warned) is not None


def _read(path: str) -> Tuple[List[Dict[str, Any]], bool]:
    """Returns the leading epochs of a file that are whole, and whether those are all."""
    epochs: List[Dict[str, Any]] = []
    try:
        epochs.extend(read_epochs(path))
    except FileNotFoundError:
        pass
    except ValueError:
        return epochs, False
    return epochs, True
