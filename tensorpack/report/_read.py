"""Reads what the log directory of a run holds; any file there may be missing or damaged."""

import json
import math
import os
import re
from contextlib import suppress
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from tensorpack.utils._run_record import read_record
from tensorpack.utils.untrusted import read_untrusted

from ._samples import Sample, find_samples

__all__ = ["Epochs", "File", "Parameter", "Run", "read_run"]

STATS, LOG, TIMES = "stats.json", "log.log", "time_reports.jsonl"
_BACKUP = re.compile(r"\.\d{4}-\d{6}(-\d+)?$")  # see `utils.atomic.backup_name`
_MOST_BYTES = 256 << 20
_LOG_BYTES = 1 << 20  # the end of a log
_LOG_LINES = 60
_MOST_EARLIER = 5  # statistics of earlier runs
_MOST_FILES = 300
_TIME_LINE = re.compile(r"^\[(\d{4} [\d:]+) .*?\] (Where the time goes.*)$", re.MULTILINE)
_TABLE = re.compile(r"Model Parameters: *\n.*\n[- ]+\n((?:.+\n)+?)Total #vars")
_ROW = re.compile(r"^(\S+) +\[([\d, ]*)\] +\d+$")

Epochs = List[Dict[str, Any]]


class File(NamedTuple):
    """A file or folder in the directory."""

    name: str
    size: Optional[int]  # bytes; None of a folder


class Parameter(NamedTuple):
    """A trainable variable."""

    name: str
    shape: Tuple[int, ...]
    dtype: str


class Run(NamedTuple):
    """All that the page shows."""

    directory: str
    sittings: List[Dict[str, Any]]  # of `run.json`, the newest last
    epochs: Epochs
    earlier: List[Tuple[str, Epochs]]  # what files that were put aside have alone
    times: List[Dict[str, Any]]  # time reports, each with a "text"
    parameters: List[Parameter]
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
    record = _record(directory, troubles)
    log = _tail(os.path.join(directory, LOG), troubles)
    backups = [name for name in names if name.startswith(STATS) and _BACKUP.search(name)]
    epochs = _epochs(os.path.join(directory, STATS), troubles)
    earlier = [
        (name, _without(_epochs(os.path.join(directory, name), troubles), epochs))
        for name in backups[-_MOST_EARLIER:]
    ]
    return Run(
        directory,
        record.get("sittings", []),
        epochs,
        [(name, dropped) for name, dropped in earlier if dropped],
        _times(directory, log, troubles),
        _parameters(record, log),
        find_samples(directory, names, troubles),
        log.splitlines()[-_LOG_LINES:],
        _files(directory, names),
        troubles,
    )


def _record(directory: str, troubles: List[str]) -> Dict[str, Any]:
    try:
        return read_record(directory) or {}
    except (OSError, ValueError) as error:
        troubles.append(str(error))
        return {}


def _text(path: str, troubles: List[str]) -> str:
    try:
        return read_untrusted(path, _MOST_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    except OSError as error:
        troubles.append(str(error))
        return ""


def _tail(path: str, troubles: List[str]) -> str:
    return _text(path, troubles)[-_LOG_BYTES:]


def _epochs(path: str, troubles: List[str]) -> Epochs:
    """The epochs in a file; the first ones that are whole, if it is damaged."""
    text = _text(path, troubles)
    if not text.strip():
        return []
    decoder, found = json.JSONDecoder(parse_constant=lambda name: None), []
    end, whole = text.find("[") + 1, False
    with suppress(ValueError, RecursionError):
        while end > 0 and not whole:
            epoch, end = decoder.raw_decode(text, text.index("{", end))
            if not isinstance(epoch, dict) or not _is_number(epoch.get("global_step")):
                break
            found.append(epoch)
            whole = text[end:].lstrip().startswith("]")
    if not whole:
        troubles.append(f"{path} cannot be read to its end; its first {len(found)} epochs can.")
    return found


def _without(epochs: Epochs, others: Epochs) -> Epochs:
    """Those of an earlier file that the present one, of which most are copies, has not."""
    known = {json.dumps(each, sort_keys=True) for each in others}
    return [each for each in epochs if json.dumps(each, sort_keys=True) not in known]


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number and math.isfinite(value)


def _times(directory: str, log: str, troubles: List[str]) -> List[Dict[str, Any]]:
    """The time reports in their file, or else in the log."""
    found: List[Dict[str, Any]] = []
    for line in _text(os.path.join(directory, TIMES), troubles).splitlines():
        with suppress(ValueError, RecursionError):  # the last line may be cut off
            report = json.loads(line)
            if isinstance(report, dict) and isinstance(report.get("text"), str):
                found.append(report)
    return found or [{"at": at, "text": text} for at, text in _TIME_LINE.findall(log)]


def _parameters(record: Dict[str, Any], log: str) -> List[Parameter]:
    """The trainable variables, from the record, or else from the table in the log."""
    found: List[Parameter] = []
    listed = record.get("parameters")
    for each in listed if isinstance(listed, list) else []:
        with suppress(TypeError, ValueError):
            name, shape, dtype = each
            found.append(Parameter(str(name), tuple(int(size) for size in shape), str(dtype)))
    if found:
        return found
    tables = _TABLE.findall(log)
    rows = [_ROW.match(line.strip()) for line in tables[-1].splitlines()] if tables else []
    for row in rows:
        if row is not None:
            shape = tuple(int(size) for size in row.group(2).split(",") if size.strip())
            found.append(Parameter(row.group(1), shape, ""))
    return found


def _files(directory: str, names: List[str]) -> List[File]:
    found = []
    for name in [name for name in names if not name.startswith(".")][:_MOST_FILES]:
        path = os.path.join(directory, name)
        with suppress(OSError):  # it may be deleted meanwhile
            found.append(File(name, None if os.path.isdir(path) else os.lstat(path).st_size))
    return found
