"""Writes the scalars of every epoch to `stats.json`."""

import json
import math
import os
from contextlib import suppress
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set

import numpy as np

from tensorpack.runs.statistics import FILENAME, RESERVED, parse_epochs
from tensorpack.utils import logger
from tensorpack.utils.atomic import keep_backup, move_to_backup, write_atomic

from .._disk import survive
from ..monitor import LastValues


class JSONWriter(LastValues):
    """Keeps `stats.json` in `logdir`, the log directory by default: a list with one object for each
    epoch, such as ::

        {"epoch_num": 1, "global_step": 25000, "cost": 0.001137, "learning_rate": 0.001}

    The values are the last ones put in that epoch; NaN and infinite ones, which JSON does not have,
    are written as `null`. To make a table of it: `pandas.read_json("stats.json")`. Without a
    directory nothing is written. A scalar named `epoch_num` or `global_step` is written under
    `scalar/epoch_num` or `scalar/global_step`. The file is replaced atomically after each epoch. A
    failing disk causes one warning, and the next epoch tries again.

    A resumed run continues the file from its saved state: epochs that an earlier run began after
    that state are dropped, and the old file is kept with `.MMDD-HHMMSS` behind its name. Without a
    state, a run that starts with the epoch after the last one in the file continues it, and any
    other run renames the file in that way. A file that cannot be read to its end is renamed with
    `.corrupt` behind its name, and its complete epochs are used.
    """

    sets_up_last = True  # a saver may set the log directory

    def __init__(self, logdir: Optional[str] = None) -> None:
        super().__init__()
        self._logdir = os.path.abspath(logdir) if logdir else ""
        self._epochs: List[Dict[str, Any]] = []
        self._texts: List[str] = []  # of the epochs, of which only the last one still changes
        self._given = 0  # how many of them, the first, are not from the history of the monitors
        self._resumed = False
        self._began = False
        self._previous_loaded = False
        self._failed = False
        self._renamed: Set[str] = set()

    @staticmethod
    def load_existing_json(dir: Optional[str] = None) -> Optional[List[Dict[str, Any]]]:
        """Returns the epochs in the file of a directory, the log directory by default, the complete
        ones if it is truncated, with None for NaN; None if there is no file.
        """
        loaded = _load(os.path.join(dir or logger.get_logger_dir(), FILENAME))  # type: ignore
        return None if loaded is None else loaded.epochs

    @staticmethod
    def load_existing_epoch_number(dir: Optional[str] = None) -> Optional[int]:
        """Returns the number of the last epoch in the file, or None if there is none."""
        epochs = JSONWriter.load_existing_json(dir)
        return int(epochs[-1]["epoch_num"]) if epochs else None

    def _setup_graph(self) -> None:
        self._logdir = self._logdir or logger.get_logger_dir() or ""
        if not self._logdir:
            logger.warning(f"No {FILENAME} is written: there is no log directory to put it in.")

    def _before_train(self) -> None:
        self._began = True
        self._take_history()
        self._survive(self._load_previous)

    def state_dict(self) -> Dict[str, Any]:
        """The pending scalars and, once the file has been read, the epochs; after those that are
        given, without the values, which are in the history of the monitors.
        """
        state = super().state_dict()
        if self._began or self._resumed:
            # Without steps, the history does not tell epochs apart.
            given = self._given if self.trainer.steps_per_epoch else len(self._epochs)
            bare = [{key: each[key] for key in RESERVED} for each in self._epochs[given:]]
            state.update(given=given, tail=[*map(dict, self._epochs[:given]), *bare])
        return state

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        super().load_state_dict(state)
        self._resumed = "tail" in state
        self._epochs = [dict(each) for each in state.get("tail", ())]
        self._given = state.get("given", 0)

    def _take_history(self) -> None:
        """Gives the epochs of an earlier run their values: the last ones up to the step of each."""
        epochs = self._epochs[self._given :]
        ends = [each["global_step"] for each in epochs]
        begin = self._epochs[self._given - 1]["global_step"] if self._given else -1
        for name, records in self.trainer.monitors.state_dict().items():
            places = np.searchsorted(ends, records["steps"])
            within = (records["steps"] > begin) & (places < len(ends))
            for place, value in zip(places[within].tolist(), records["values"][within].tolist()):
                epochs[place][_key(name)] = _finite(value)

    def _load_previous(self) -> None:
        """Loads the epochs of an earlier run; after an `OSError` it is tried again."""
        if self._previous_loaded:
            return
        path = self._path()
        epochs, complete, non_finite = _load(path) or _Loaded([], True, 0)
        if non_finite:
            logger.warning(
                f"{path} has {non_finite} numbers that are NaN, infinite or too large; they become "
                "null."
            )
        if not complete:
            corrupt = move_to_backup(path, ".corrupt")
            logger.warning(
                f"{path} cannot be read to its end and was renamed to {corrupt}; its first "
                f"{len(epochs)} epochs are whole."
            )
        if self._resumed:
            self._resume(path, epochs, complete)
        else:
            self._append_to(path, epochs, complete)
        self._previous_loaded = True

    def _resume(self, path: str, found: List[Dict[str, Any]], complete: bool) -> None:
        """Continues after the epochs of a saved state."""
        first = self._epochs[0]["global_step"] if self._epochs else 0
        older = [each for each in found if each["global_step"] < first]
        self._epochs, self._given = older + self._epochs, self._given + len(older)
        known = {(each["epoch_num"], each["global_step"]) for each in self._epochs}
        known.add((self.epoch_num, self.global_step))  # is written again if it is not in the state
        dropped = [each for each in found if (each["epoch_num"], each["global_step"]) not in known]
        if dropped and complete:
            kept = keep_backup(path) if self._epochs else move_to_backup(path)
            logger.info(
                f"{len(dropped)} epochs in {path} are later than the state that this run resumes "
                f"and are dropped; the old file is kept as {kept}."
            )
        elif found:
            self._log_append(path, found)
        if self._epochs and (self._epochs != found or not complete):
            self._write(path)

    def _append_to(self, path: str, epochs: List[Dict[str, Any]], complete: bool) -> None:
        """Continues the file if this run starts with the epoch after its last one."""
        first = self.trainer.starting_epoch
        if epochs and epochs[-1]["epoch_num"] == first - 1:
            self._epochs, self._given = epochs + self._epochs, self._given + len(epochs)
            self._log_append(path, epochs)
        elif complete and epochs:
            logger.warning(
                f"{path} ends with epoch {epochs[-1]['epoch_num']}, but this run begins with "
                f"epoch {first}: it is renamed to {move_to_backup(path)}."
            )

    def _log_append(self, path: str, epochs: List[Dict[str, Any]]) -> None:
        logger.info(f"This run appends to {path}, which ends with epoch {epochs[-1]['epoch_num']}.")

    def process_scalar(self, name: str, val: float) -> None:
        key = _key(name)
        if key != name and name not in self._renamed:
            self._renamed.add(name)
            logger.error(
                f"A scalar is named {name!r}, which {FILENAME} has for the epoch itself: "
                f"it is written there as {key!r}. Give it another name."
            )
        super().process_scalar(key, val)

    def _before_epoch(self) -> None:
        """Adds the scalars that later callbacks put for the last epoch."""
        if self._values and self._epochs and self._epochs[-1]["global_step"] == self.global_step:
            self._take_scalars()

    def _trigger(self) -> None:
        if not self._values:
            return
        last = self._epochs[-1] if self._epochs else {}
        if last.get("epoch_num") != self.epoch_num:
            self._epochs.append({"epoch_num": self.epoch_num})
        self._epochs[-1]["global_step"] = self.global_step
        self._take_scalars()

    def _after_train(self) -> None:
        self._before_epoch()

    def _take_scalars(self) -> None:
        self._epochs[-1].update((key, _finite(value)) for key, value in self._values.items())
        self._values.clear()
        self._survive(self._save)

    def _save(self) -> None:
        self._load_previous()  # if the disk failed before
        os.makedirs(self._logdir, exist_ok=True)
        self._write(self._path())

    def _write(self, path: str) -> None:
        del self._texts[len(self._epochs) - 1 :]
        rest = self._epochs[len(self._texts) :]
        self._texts += [json.dumps(each, allow_nan=False) for each in rest]
        write_atomic(path, f"[{', '.join(self._texts)}]".encode())

    def _survive(self, action: Callable[[], None]) -> None:
        if self._logdir:
            message = f"Cannot write {self._path()}, the training continues"
            self._failed |= survive(action, message, quiet=self._failed) is not None

    def _path(self) -> str:
        return os.path.join(self._logdir, FILENAME)


class _Loaded(NamedTuple):
    """What was found in a file."""

    epochs: List[Dict[str, Any]]  # the leading ones that are complete
    complete: bool  # whether they are all of the file
    non_finite: int  # how many numbers are NaN, infinite or too large; they are read as None


def _load(path: str) -> Optional[_Loaded]:
    """Reads a file; returns None if there is none."""
    non_finite: List[str] = []

    def number(text: str) -> Optional[float]:
        value = float(text)
        if math.isfinite(value):
            return value
        non_finite.append(text)
        return None

    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except FileNotFoundError:
        return None
    decoder = json.JSONDecoder(parse_float=number, parse_constant=number)
    epochs: List[Dict[str, Any]] = []
    with suppress(ValueError):
        epochs.extend(parse_epochs(text, decoder))
        return _Loaded(epochs, text.rstrip().endswith("]"), len(non_finite))
    return _Loaded(epochs, False, len(non_finite))


def _key(name: str) -> str:
    return f"scalar/{name}" if name in RESERVED else name


def _finite(value: float) -> Optional[float]:
    return value if math.isfinite(value) else None
