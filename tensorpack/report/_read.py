"""Reads what the log directory of a run holds; any file there may be missing or cut off."""

import base64
import json
import os
import re
from collections import deque
from contextlib import suppress
from typing import Any, Dict, List, NamedTuple, Tuple

from tensorpack.runs.record import read_record
from tensorpack.runs.statistics import Epoch, read_epochs

_FILES = ("run.json", "stats.json", "log.log", "checkpoint")  # of which a run has one at least
_LINES = 60  # of the log
_PICTURE = re.compile(r"\.(png|jpe?g|gif|webp)$", re.IGNORECASE)
_SERIES = re.compile(r"(.*?)(\d+)(-\d+)?\.\w+$")  # such as `{prefix}-ep{epoch}-{index}.png`
_MOST_PICTURES = 24


class Run(NamedTuple):
    """What the page shows of a run."""

    directory: str
    name: str
    attempts: List[Dict[str, Any]]  # of `run.json`, the newest last
    parameters: List[Tuple[str, List[int], str]]  # name, shape, dtype
    epochs: List[Epoch]
    time: str  # the last time report
    pictures: List[Tuple[str, str]]  # name, `data:` URI
    log: str
    notes: List[str]  # what is not shown


def read_run(directory: str, name: str) -> Run:
    """Reads a log directory; raises ValueError if there is none, or no run was in it."""
    hint = "give the log directory of a training, such as train_log/NAME."
    if not os.path.isdir(directory):
        raise ValueError(f"{directory} is not a directory: {hint}")
    if not set(_FILES) & set(os.listdir(directory)):
        raise ValueError(f"{directory} has no run.json, stats.json or log.log: {hint}")
    notes: List[str] = []
    record: Dict[str, Any] = {}
    epochs: List[Epoch] = []
    try:
        record.update(read_record(directory) or {})
    except ValueError as error:
        notes.append(str(error))
    try:
        epochs.extend(read_epochs(directory))
    except FileNotFoundError:
        pass
    except ValueError as error:
        notes.append(str(error))
    return Run(
        directory,
        name,
        record.get("attempts", []),
        record.get("parameters", []),
        epochs,
        _last_time_report(directory),
        _pictures(directory, notes),
        "".join(_last_lines(directory, "log.log")),
        notes,
    )


def _last_lines(directory: str, name: str) -> List[str]:
    path = os.path.join(directory, name)
    with suppress(FileNotFoundError), open(path, encoding="utf-8", errors="replace") as file:
        return list(deque(file, _LINES))
    return []


def _last_time_report(directory: str) -> str:
    for line in reversed(_last_lines(directory, "time_reports.jsonl")):
        with suppress(ValueError):  # it may be cut off
            return json.loads(line)["text"]
    return ""


def _pictures(directory: str, notes: List[str]) -> List[Tuple[str, str]]:
    """The newest picture of each series, one that is numbered like the others of it."""
    newest: Dict[Any, Tuple[int, str]] = {}
    for name in filter(_PICTURE.search, sorted(os.listdir(directory))):
        match = _SERIES.match(name)
        series = match.group(1, 3) if match else name
        entry = int(match.group(2)) if match else 0, name
        newest[series] = max(entry, newest.get(series, entry))
    if len(newest) > _MOST_PICTURES:
        notes.append(f"Of {len(newest)} pictures, {_MOST_PICTURES} are shown.")
    pictures = []
    for _, name in list(newest.values())[:_MOST_PICTURES]:
        kind = os.path.splitext(name)[1][1:].lower().replace("jpg", "jpeg")
        with open(os.path.join(directory, name), "rb") as file:
            content = base64.b64encode(file.read()).decode("ascii")
        pictures.append((name, f"data:image/{kind};base64,{content}"))
    return pictures
