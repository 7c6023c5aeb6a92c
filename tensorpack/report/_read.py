"""Reads what the log directory of a run holds; any file there may be missing or damaged."""

import json
import os
import re
from contextlib import suppress
from typing import Any, Dict, List, NamedTuple, Optional, Set, Tuple

from tensorpack.runs.record import read_record
from tensorpack.runs.statistics import Epoch, read_epochs
from tensorpack.utils.checkpoints.variables import Variable

from ._samples import Sample, find_samples

STATS, LOG, TIMES = "stats.json", "log.log", "time_reports.jsonl"
_BACKUP = re.compile(r"\.\d{4}-\d{6}(-\d+)?$")  # see `utils.atomic.backup_name`
_TAIL_BYTES = 1 << 20  # of a log, or of time reports
_LOG_LINES = 60
_EPOCH = "] Start Epoch "
_MOST_EARLIER = 5  # statistics of earlier runs
_MOST_FILES = 300
_TIME_LINE = re.compile(r"^\[(\d{4} [\d:]+) .*?\] (Where the time goes.*)$", re.MULTILINE)
_TABLE_TITLE, _TABLE = "Model Parameters:", re.compile(r" *\n.*\n[- ]+\n((?:.+\n)+?)Total #vars")
_ROW, _DIGITS = re.compile(r"^(\S+) +\[([\d, ]*)\] +\d+$"), re.compile(r"\d+")


class File(NamedTuple):
    """A file or folder in the directory."""

    name: str
    size: Optional[int]  # bytes; None of a folder


class Run(NamedTuple):
    """All that the page shows."""

    directory: str
    attempts: List[Dict[str, Any]]  # of `run.json`, the newest last
    epochs: List[Epoch]
    earlier: List[Tuple[str, List[Epoch]]]  # what files that were put aside have alone
    times: List[Dict[str, Any]]  # time reports, each with a "text"
    parameters: List[Tuple[str, Variable]]  # the trainable variables
    samples: List[Sample]
    log: List[str]
    files: List[File]
    troubles: List[str]  # what could not be read


def read_run(directory: str) -> Run:
    """Reads a log directory.

    Raises:
      ValueError: there is none, or it has no file of a run.
    """
    directory = os.path.abspath(directory)
    if not os.path.isdir(directory):
        raise ValueError(f"{directory} is not a directory: give the log directory of a training.")
    names = sorted(os.listdir(directory))
    if not any(name in names for name in ("run.json", STATS, LOG, "checkpoint")):
        raise ValueError(
            f"{directory} has no run.json, {STATS} or {LOG}: give the log directory of a training, "
            "such as train_log/NAME."
        )
    troubles: List[str] = []
    record: Dict[str, Any] = {}
    try:
        record.update(read_record(directory) or {})
    except (OSError, ValueError) as error:
        troubles.append(str(error))
    log = _tail(os.path.join(directory, LOG), troubles)
    backups = [name for name in names if name.startswith(STATS) and _BACKUP.search(name)]
    now, *earlier = _statistics(directory, [STATS, *backups[-_MOST_EARLIER:]], troubles)
    lines = log.splitlines()[-_LOG_LINES:]
    return Run(
        directory,
        record.get("attempts", []),
        now[1],
        [(name, dropped) for name, dropped in earlier if dropped],
        _times(directory, log, troubles),
        _parameters(record, log),
        find_samples(directory, troubles),
        lines[next((i for i, line in enumerate(lines) if _EPOCH in line), 0) :],
        _files(directory, names),
        troubles,
    )


def _tail(path: str, troubles: List[str]) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            return file.read(_TAIL_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        troubles.append(str(error))
        return ""


def _statistics(
    directory: str, names: List[str], troubles: List[str]
) -> List[Tuple[str, List[Epoch]]]:
    """The epochs in files, of each what those before it, of which most are copies, have not."""
    known: Set[int] = set()
    found: List[Tuple[str, List[Epoch]]] = []
    for name in names:
        found.append((name, []))
        try:
            for epoch in read_epochs(os.path.join(directory, name)):
                key = hash(frozenset(epoch.items()))
                if key not in known:
                    found[-1][1].append(epoch)
                known.add(key)
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            troubles.append(str(error))
    return found


def _times(directory: str, log: str, troubles: List[str]) -> List[Dict[str, Any]]:
    """The time reports in their file, or else in the log."""
    found: List[Dict[str, Any]] = []
    for line in _tail(os.path.join(directory, TIMES), troubles).splitlines():
        with suppress(ValueError):  # the first and the last line may be cut off
            found.append(json.loads(line))
    return found or [{"at": at, "text": text} for at, text in _TIME_LINE.findall(log)]


def _parameters(record: Dict[str, Any], log: str) -> List[Tuple[str, Variable]]:
    """The trainable variables, from the record, or else from the table in the log."""
    rows = record.get("parameters")
    table = _TABLE.match(log.rpartition(_TABLE_TITLE)[2])
    if table and not rows:
        lines = map(_ROW.match, map(str.strip, table.group(1).splitlines()))
        rows = [(row.group(1), _DIGITS.findall(row.group(2)), "") for row in lines if row]
    return [(name, Variable(dtype, tuple(map(int, sizes)))) for name, sizes, dtype in rows or []]


def _files(directory: str, names: List[str]) -> List[File]:
    found = []
    for name in [name for name in names if not name.startswith(".")][:_MOST_FILES]:
        path = os.path.join(directory, name)
        with suppress(OSError):  # it may be deleted meanwhile
            found.append(File(name, None if os.path.isdir(path) else os.path.getsize(path)))
    return found
