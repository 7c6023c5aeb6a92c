"""The file `run.json` of a log directory: who ran what, where, and how it ended.

A run that is stopped and resumed has several *attempts*, one for each process (or trainer) that
worked on it. An attempt is added at its start and completed at its end; those before it are kept.
docs/runs.md describes the fields.
"""

import json
import os
from datetime import datetime, timezone
from typing import Any, Dict, List, Optional

from tensorpack.utils import logger
from tensorpack.utils.atomic import move_to_backup, write_atomic

FILENAME = "run.json"
LOST = "lost"  # the result of an attempt whose process crashed or was killed

_FORMAT = 1


def utc_now() -> str:
    """Returns the time as `2026-01-31T12:00:00Z`."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_record(directory: str) -> Optional[Dict[str, Any]]:
    """Returns the record in a directory, with a list of dictionaries as its "attempts", or None.

    Raises:
      ValueError: the file is not a record.
      OSError: it cannot be read.
    """
    path = os.path.join(directory, FILENAME)
    try:
        with open(path, "rb") as file:
            record = json.load(file)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    attempts = record.get("attempts") if isinstance(record, dict) else None
    if not isinstance(attempts, list) or not all(isinstance(each, dict) for each in attempts):
        raise ValueError(f"{path} is not the record of a run: it has no list of attempts.")
    return record


class RunRecord:
    """Writes one attempt to `run.json` in a directory that exists, alone.

    A file that is damaged is renamed, with `.corrupt` behind its name. What goes wrong here is
    logged once, as a warning, and changes nothing else.
    """

    _loaded = utc_now()  # no attempt of this process has started before

    def __init__(self, directory: str) -> None:
        self.directory, self._path = directory, os.path.join(directory, FILENAME)
        self._attempt: Dict[str, Any] = {"id": os.urandom(4).hex()}
        self._warned = False

    def write(self, facts: Dict[str, Any], about_all: Optional[Dict[str, Any]] = None) -> None:
        """Adds fields to the attempt, and to the record itself (`about_all`), and writes it."""
        self._attempt.update(facts)
        try:
            record = {**self._load(), **(about_all or {})}
            self._put(record["attempts"])
            self._save(record)
        except (OSError, ValueError, TypeError) as error:
            if not self._warned:
                self._warned = True
                logger.warning(f"Cannot write {self._path}, the training continues: {error}")

    def _load(self) -> Dict[str, Any]:
        try:
            record = read_record(self.directory)
        except ValueError as error:
            aside = move_to_backup(self._path, ".corrupt")
            logger.warning(f"{error} It was renamed to {aside}, and a new one is begun.")
            record = None
        return {"format": _FORMAT, "attempts": []} if record is None else record

    def _save(self, record: Dict[str, Any]) -> None:
        text = json.dumps(record, indent=1, allow_nan=False, default=str)
        write_atomic(self._path, text.encode("ascii") + b"\n", sync_folder=False)

    def _put(self, attempts: List[Dict[str, Any]]) -> None:
        mine = [i for i, each in enumerate(attempts) if each.get("id") == self._attempt["id"]]
        if mine:
            attempts[mine[0]] = self._attempt
            return
        # Its process is gone, or the directory would be locked. In containers numbers come again.
        for each in attempts:
            here = each.get("process") == os.getpid() and each.get("started", "~") >= self._loaded
            if "result" not in each and not here:
                each["result"] = LOST
        attempts.append(self._attempt)
